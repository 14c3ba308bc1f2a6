"""Calls to language models: the only place that knows litellm and instructor.

client (key, cache, one flight) -> answering (instructor, re-asks) -> sending (gate, retry, HTTP, ledger)
"""
