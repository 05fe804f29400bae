"""The interactive view: a module's way through a pipeline, recorded, and shown as a page, a report or in a notebook."""

from relay.viewer.record import Record, Recording, Step, record

__all__ = ["Record", "Recording", "Step", "record"]
