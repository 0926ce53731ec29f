"""Logs that producers of many libraries and languages wrote, all with the same records."""
