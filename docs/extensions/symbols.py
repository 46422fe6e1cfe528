"""A public name in code style, on any page, leads to its entry in the API."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

NAME = re.compile(r"(?:factordiff\.)?([A-Za-z_][\w.]*)(?:\(.*\))?")  # with or without arguments
NO_LINKS_IN = (nodes.reference, nodes.title, addnodes.desc_signature)


def link_names(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put links around the names; inside an entry a name is first one of that class."""
    known = app.env.domains["py"].objects
    for literal in list(doctree.findall(nodes.literal)):
        found = NAME.fullmatch(literal.astext())
        if found is None or _inside(literal, NO_LINKS_IN):
            continue
        owners = _owners(literal)
        for full in (*(f"{owner}.{found[1]}" for owner in owners), f"factordiff.{found[1]}"):
            if full in known and full not in owners:
                entry = known[full]
                inner = literal.deepcopy()
                link = make_refnode(app.builder, docname, entry.docname, entry.node_id, inner, full)
                literal.replace_self(link)
                break


def _inside(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


def _owners(node: nodes.Node) -> list[str]:
    """The full names of the entries around a node, the innermost first."""
    names = []
    while node.parent is not None:
        node = node.parent
        if isinstance(node, addnodes.desc) and node["domain"] == "py":
            signature = node.next_node(addnodes.desc_signature)
            names += [f"{signature['module']}.{signature['fullname']}"]
    return names


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("doctree-resolved", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
