"""Runs the conformance scenarios (tests/conformance/README.md) through the Python package."""
