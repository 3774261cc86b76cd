"""Where a scheduler remembers: `memory`, `sqlite`, `postgres`. Import the one you use: it brings its driver."""
