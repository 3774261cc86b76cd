"""Parts of the store that ends with its process."""
