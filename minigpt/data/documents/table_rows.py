"""Tables inside a text: a row becomes a line, in the place where it stands."""

from .blocks import Block


class TextWithTables:
    """Blocks in the order of a text. Blocks in the cells of a row become a line at its end."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._rows: list[list[list[Block]]] = []  # that are open: cells of blocks

    def begin_row(self) -> None:
        """A row begins, perhaps inside the cell of another one."""
        self._rows.append([])

    def begin_cell(self) -> None:
        """A cell of the innermost row begins; outside of a row nothing happens."""
        if self._rows:
            self._rows[-1].append([])

    def end_row(self) -> None:
        """The innermost row ends, if there is one."""
        if self._rows:
            for block in row_of(self._rows.pop()):
                self.add(block)

    def add(self, block: Block) -> None:
        """Add a block to the cell in which it is, or to the text."""
        if not self._rows:
            self.blocks.append(block)
            return

        cells = self._rows[-1]
        if cells:  # what stands between the cells of a row is none of the text
            cells[-1].append(block)


def row_of(cells: list[list[Block]]) -> list[Block]:
    """The row of a table as a line, with tabs between its cells. If only one cell has text, the
    table is there for the layout: the blocks of the cell are returned as they are."""
    written = [[block for block in cell if block.text] for cell in cells]
    filled = [cell for cell in written if cell]
    if len(filled) <= 1:
        return [block for cell in filled for block in cell]

    texts = [" ".join(block.text.replace("\n", " ") for block in cell) for cell in written]
    return [Block("\t".join(texts).rstrip("\t"), is_line=True)]
