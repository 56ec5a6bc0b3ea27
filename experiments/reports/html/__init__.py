"""The HTML page of the ``report`` command: its parts and its sections."""
