"""Which node starts next of those that are ready: what completes a cell, then what has the longest way to go."""

from collections import Counter
from collections.abc import Callable
from graphlib import TopologicalSorter

from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from deephash_pipeline.project.runners.needs import Capacity, Needs, cell_of, steps_to_the_end


class Schedule:
    """The nodes of a run: ready, running, done, failed, or not to be run because of a failure.

    Args:
        pipeline: with all its nodes still to be run.
        capacity: what nodes may take up together.
        needs_of: says what a node needs, once its inputs are stored.
        stop_on_error: whether the run ends where a node fails, and what does not need it is not run either.
    """

    def __init__(
        self, pipeline: Pipeline, capacity: Capacity, needs_of: Callable[[Node], Needs], stop_on_error: bool = False
    ) -> None:
        self.stop_on_error = stop_on_error
        self._capacity = capacity
        self._needs_of = needs_of
        self._parents = {node: set(parents) for node, parents in pipeline.node_dependencies.items()}
        self.nodes = list(pipeline.nodes)
        self._begun: set[str] = set()
        # Looked at thousands of times in a run: what is known of a node is looked up, and who is ready is kept.
        steps = steps_to_the_end(self.nodes)
        self._precedence = {node.name: (steps[node.name], -place) for place, node in enumerate(self.nodes)}
        self._cells = {node.name: cell_of(node) for node in self.nodes}
        self._needs: dict[str, Needs] = {}
        self._order = TopologicalSorter(self._parents)
        self._order.prepare()
        self._ready = {node.name: node for node in self._order.get_ready()}
        self.running: dict[Node, Needs] = {}
        self.done: set[Node] = set()
        self.skipped: list[Node] = []
        self.attempts: Counter[Node] = Counter()

    def start_next(self) -> tuple[Node, Needs] | None:
        """Start a node, if one is ready and there is room for it."""
        if not self._ready:
            return None
        # A smaller one is not let past the longest: a node that needs the whole machine would never start.
        name = max(self._ready, key=lambda name: (self._cells[name] in self._begun, self._precedence[name]))
        node = self._ready[name]
        needs = self._needs.get(name) or self._needs.setdefault(name, self._needs_of(node))
        if not self._capacity.has_room_for(needs, self.running.values()):
            return None
        del self._ready[name]
        self.running[node] = needs
        # To encode and evaluate what a training has made takes little, and shows it at once.
        self._begun |= {self._cells[name]} - {""}
        self.attempts[node] += 1
        return node, needs

    def finish(self, node: Node) -> None:
        """Note that a node is done."""
        del self.running[node]
        self.done.add(node)
        self._order.done(node)
        self._ready |= {child.name: child for child in self._order.get_ready()}

    def put_back(self, node: Node) -> None:
        """Have a node run again."""
        del self.running[node]
        self._ready[node.name] = node

    def fail(self, node: Node) -> None:
        """Leave out a node that has failed, and all that need what it would have made."""
        del self.running[node]
        lost = {node}
        for other in self.nodes:
            if self._parents[other] & lost:
                lost.add(other)
                self.skipped.append(other)
