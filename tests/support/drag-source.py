# A window that holds files, for dragging them elsewhere. What becomes of a drag is said on stdout.
import pathlib
import sys

import gi

gi.require_version("Gdk", "3.0")
gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, Gtk  # noqa: E402

FILES = [pathlib.Path(name).as_uri() for name in sys.argv[1:]]


def say(word):
    print(word, flush=True)


def give(_widget, _context, data, _info, _time):
    data.set_uris(FILES)


def failed(_widget, _context, _result):
    say("failed")
    return True  # without the picture flying back


# Not managed: it stays where it is put, and above the others.
window = Gtk.Window(type=Gtk.WindowType.POPUP)
window.move(10, 710)
window.set_default_size(60, 60)
window.add_events(Gdk.EventMask.BUTTON_PRESS_MASK)
window.drag_source_set(Gdk.ModifierType.BUTTON1_MASK, [], Gdk.DragAction.COPY)
window.drag_source_add_uri_targets()
window.connect("drag-begin", lambda *_: say("begun"))
window.connect("drag-data-get", give)
window.connect("drag-failed", failed)
window.connect("drag-end", lambda *_: say("ended"))
window.connect("map-event", lambda *_: say("shown"))
window.show_all()
Gtk.main()
