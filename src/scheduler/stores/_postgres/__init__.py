"""Face."""
