"""A minimum cut: divides the nodes of a graph between two sides at the least cost. Source: E. A. Dinic's algorithm,
1970."""

from __future__ import annotations

from collections import deque

ENDLESS = 1 << 60


class Cut:
    """A graph whose nodes are integers; node 0 is on one side, node 1 on the other."""

    def __init__(self) -> None:
        self.edges: list[list[int]] = [[], []]
        self.head: list[int] = []
        self.room: list[int] = []

    def node(self) -> int:
        """Add a node, and return its number."""
        self.edges.append([])
        return len(self.edges) - 1

    def cost(self, first: int, second: int, amount: int) -> None:
        """Add a cost that applies if the first node is on the side of node 0 and the second on that of node 1."""
        for tail, head, room in ((first, second, amount), (second, first, 0)):
            self.edges[tail].append(len(self.head))
            self.head.append(head)
            self.room.append(room)

    def side(self) -> list[bool]:
        """For each node, whether it is on the side of node 1 in the cheapest division; if several divisions are
        cheapest, in the one with the most nodes on the side of node 1."""
        while (levels := self.levels())[1] >= 0:
            used = [0] * len(self.edges)
            while self.push(levels, used):
                pass
        return [level < 0 for level in self.levels()]

    def levels(self) -> list[int]:
        """The distance of each node from node 0, over edges with remaining capacity; -1 if it cannot be reached."""
        levels = [-1] * len(self.edges)
        levels[0] = 0
        queue = deque([0])
        while queue:
            tail = queue.popleft()
            for edge in self.edges[tail]:
                if self.room[edge] and levels[self.head[edge]] < 0:
                    levels[self.head[edge]] = levels[tail] + 1
                    queue.append(self.head[edge])
        return levels

    def push(self, levels: list[int], used: list[int]) -> int:
        """Send flow from node 0 to node 1 along a path on which `levels` rise, and return the amount; 0 if there is no
        such path. `used` has, for each node, the index of the next edge to try."""
        path = list[int]()
        tail = 0
        while tail != 1:
            edges = self.edges[tail]
            while used[tail] < len(edges):
                edge = edges[used[tail]]
                if self.room[edge] and levels[self.head[edge]] == levels[tail] + 1:
                    break
                used[tail] += 1
            if used[tail] < len(edges):
                path.append(edges[used[tail]])
                tail = self.head[path[-1]]
            elif path:
                tail = self.head[path.pop() ^ 1]
                used[tail] += 1
            else:
                return 0
        amount = min(self.room[edge] for edge in path)
        for edge in path:
            self.room[edge] -= amount
            self.room[edge ^ 1] += amount
        return amount
