"""What happens to a log: decisions as pure functions over listings and readers."""
