"""Attacks on ``seglog serve``: what is sent, a server to send it to, and an honest client that notices."""
