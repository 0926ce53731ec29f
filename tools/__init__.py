"""Tools that keep the repository in order: generators, checks, the demo, the release."""
