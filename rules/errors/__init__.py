"""Kafka errors at any place of any answer: where they can stand, and the answers that carry them."""
