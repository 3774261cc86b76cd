"""A store that answers at once, and is not known to: as a server on a machine that has nothing else to do."""

from scheduler._commits import InlineWriter
from scheduler.stores.memory import MemoryStore


class InlineStore(MemoryStore):
    """It keeps each batch that has been committed."""

    is_immediate = False

    def __init__(self):
        super().__init__()
        self.batches = []

    def commit(self, batch):
        receipt = super().commit(batch)
        self.batches.append(batch)
        return receipt


def ask_inline(monkeypatch):
    """Let schedulers ask their stores on the loop, so that nothing waits for a thread."""
    monkeypatch.setattr("scheduler._assembly_store.ThreadWriter", lambda _on_loop: InlineWriter())
