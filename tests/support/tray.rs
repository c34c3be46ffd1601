//! The tray as the panel sees it: icons that registered, what they show, and their menus.
//!
//! A menu's labels are compared without the underscores that mark keyboard shortcuts. Over D-Bus an
//! entry is “clicked” in the same way as by the panel, so the app cannot tell the difference.

use crate::session::Session;
use crate::wait::eventually_or;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;
use zbus::blocking::Connection;
use zbus::zvariant::{OwnedObjectPath, OwnedValue, Value};

const WATCHER: &str = "org.kde.StatusNotifierWatcher";
const ITEM: &str = "org.kde.StatusNotifierItem";
const MENU: &str = "com.canonical.dbusmenu";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

type Properties = HashMap<String, OwnedValue>;
/// An entry as it comes over the bus: id, properties, and the entries below it as variants.
type Layout = (i32, Properties, Vec<OwnedValue>);

pub struct Tray {
    bus: Connection,
}

/// One icon in the tray.
pub struct Item {
    bus: Connection,
    service: String,
    path: String,
}

/// One entry of a menu, with the entries below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: i32,
    pub label: String,
    pub enabled: bool,
    pub children: Vec<Entry>,
}

impl Tray {
    pub fn new(session: &Session) -> Self {
        Self { bus: session.bus() }
    }

    /// All icons in the tray; none as well when there is no tray.
    pub fn items(&self) -> Vec<Item> {
        let names: Vec<String> = get(
            &self.bus,
            WATCHER,
            "/StatusNotifierWatcher",
            WATCHER,
            "RegisteredStatusNotifierItems",
        )
        .and_then(|value| value.try_into().ok())
        .unwrap_or_default();
        names
            .iter()
            .filter_map(|name| name.split_once('/'))
            .map(|(service, path)| self.item(service, path))
            .collect()
    }

    /// The icon of an app, by its id or title, as soon as it is there.
    #[track_caller]
    pub fn wait_for(&self, name: &str, deadline: Duration) -> Item {
        eventually_or(deadline, &format!("a tray icon of {name}"), || {
            let items = self.items();
            let seen: Vec<_> =
                items.iter().map(|i| format!("{:?} {:?}", i.id(), i.title())).collect();
            let fits = |item: &Item| [item.id(), item.title()].iter().any(|n| n.contains(name));
            items.into_iter().find(fits).ok_or_else(|| format!("icons: [{}]", seen.join(", ")))
        })
    }

    fn item(&self, service: &str, path: &str) -> Item {
        Item { bus: self.bus.clone(), service: service.into(), path: format!("/{path}") }
    }
}

impl Item {
    pub fn id(&self) -> String {
        self.text("Id")
    }

    pub fn title(&self) -> String {
        self.text("Title")
    }

    /// `Active`, `Passive` or `NeedsAttention`.
    pub fn status(&self) -> String {
        self.text("Status")
    }

    /// Title and text of the tooltip, one below the other.
    pub fn tooltip(&self) -> String {
        type Tip = (String, Vec<(i32, i32, Vec<u8>)>, String, String);
        let tip = self.get("ToolTip").and_then(|value| Tip::try_from(value).ok());
        let (_, _, title, text) = tip.unwrap_or_default();
        [title, text].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Changes exactly when the picture does; `None` when the icon has no pixels of its own.
    pub fn icon_hash(&self) -> Option<u64> {
        let pixmaps: Vec<(i32, i32, Vec<u8>)> = self.get("IconPixmap")?.try_into().ok()?;
        let mut hasher = DefaultHasher::new();
        pixmaps.hash(&mut hasher);
        (!pixmaps.is_empty()).then(|| hasher.finish())
    }

    /// A left click on the icon.
    #[track_caller]
    pub fn activate(&self) {
        self.bus
            .call_method(
                Some(self.service.as_str()),
                self.path.as_str(),
                Some(ITEM),
                "Activate",
                &(0i32, 0i32),
            )
            .expect("the icon takes a click");
    }

    /// The menu as it would open now.
    pub fn menu(&self) -> Vec<Entry> {
        let Some(path) = self.menu_path() else { return Vec::new() };
        // Some apps fill a menu only when it is about to open; those that do not may refuse the call.
        let _ = self.call_menu(&path, "AboutToShow", &0i32);
        let Ok(reply) = self.call_menu(&path, "GetLayout", &(0i32, -1i32, Vec::<String>::new()))
        else {
            return Vec::new();
        };
        let body = reply.body();
        let layout: Result<(u32, Layout), _> = body.deserialize();
        layout.map(|(_, (_, _, children))| entries(children)).unwrap_or_default()
    }

    /// Clicks the entry that the labels lead to, as soon as it is there and enabled.
    #[track_caller]
    pub fn click(&self, labels: &[&str], deadline: Duration) {
        let what = format!("clicking {}", labels.join(" → "));
        eventually_or(deadline, &what, || {
            let menu = self.menu();
            let entry = find(&menu, labels).filter(|e| e.enabled).ok_or_else(|| outline(&menu))?;
            self.click_entry(entry)
        });
    }

    /// Clicks the first entry, at any depth, that `wanted` picks.
    #[track_caller]
    pub fn click_where(&self, what: &str, wanted: impl Fn(&Entry) -> bool, deadline: Duration) {
        eventually_or(deadline, what, || {
            let menu = self.menu();
            let entry =
                search(&menu, &wanted).filter(|e| e.enabled).ok_or_else(|| outline(&menu))?;
            self.click_entry(entry)
        });
    }

    /// Clicks an entry as it was read some time ago. An error when the menu was made anew since; nothing was
    /// clicked then.
    pub fn click_entry(&self, entry: &Entry) -> Result<(), String> {
        let path = self.menu_path().expect("a menu");
        match self.call_menu(&path, "Event", &(entry.id, "clicked", Value::from(""), 0u32)) {
            // It took the click and ended for it, before it had answered.
            Err(error) if error.to_string().contains("disconnected from message bus") => Ok(()),
            Err(error) if error.to_string().contains("id not found") => Err(error.to_string()),
            Err(error) => panic!("the entry “{}” takes no click: {error}", entry.label),
            Ok(_) => Ok(()),
        }
    }

    fn menu_path(&self) -> Option<String> {
        OwnedObjectPath::try_from(self.get("Menu")?).ok().map(|path| path.to_string())
    }

    fn call_menu<A>(&self, path: &str, method: &str, args: &A) -> zbus::Result<zbus::Message>
    where
        A: serde::Serialize + zbus::zvariant::DynamicType,
    {
        self.bus.call_method(Some(self.service.as_str()), path, Some(MENU), method, args)
    }

    fn text(&self, property: &str) -> String {
        self.get(property).and_then(|value| String::try_from(value).ok()).unwrap_or_default()
    }

    fn get(&self, property: &str) -> Option<OwnedValue> {
        get(&self.bus, &self.service, &self.path, ITEM, property)
    }
}

/// A menu as indented lines, for messages and assertions.
pub fn outline(menu: &[Entry]) -> String {
    fn add(lines: &mut String, entries: &[Entry], depth: usize) {
        for entry in entries {
            let off = if entry.enabled { "" } else { " (off)" };
            let _ = writeln!(lines, "{}{}{off}", "  ".repeat(depth), entry.label);
            add(lines, &entry.children, depth + 1);
        }
    }
    let mut lines = String::from("\n");
    add(&mut lines, menu, 0);
    lines
}

fn find<'m>(menu: &'m [Entry], labels: &[&str]) -> Option<&'m Entry> {
    let (first, rest) = labels.split_first()?;
    let entry = menu.iter().find(|entry| entry.label == *first)?;
    if rest.is_empty() { Some(entry) } else { find(&entry.children, rest) }
}

fn search<'m>(menu: &'m [Entry], wanted: &dyn Fn(&Entry) -> bool) -> Option<&'m Entry> {
    menu.iter().find_map(|e| if wanted(e) { Some(e) } else { search(&e.children, wanted) })
}

/// Separators and hidden entries are nothing a person can read or click.
fn entries(children: Vec<OwnedValue>) -> Vec<Entry> {
    children
        .into_iter()
        .filter_map(|value| Layout::try_from(value).ok())
        .filter_map(entry)
        .collect()
}

fn entry((id, mut properties, children): Layout) -> Option<Entry> {
    let mut flag =
        |name| properties.remove(name).and_then(|v| bool::try_from(v).ok()).unwrap_or(true);
    let (enabled, visible) = (flag("enabled"), flag("visible"));
    let mut text =
        |name| properties.remove(name).and_then(|v| String::try_from(v).ok()).unwrap_or_default();
    let label = without_mnemonics(&text("label"));
    let shown = visible && text("type") != "separator";
    shown.then(|| Entry { id, label, enabled, children: entries(children) })
}

/// One underscore marks the next letter, two are one.
fn without_mnemonics(label: &str) -> String {
    label.replace("__", "\0").replace('_', "").replace('\0', "_")
}

fn get(
    bus: &Connection,
    service: &str,
    path: &str,
    interface: &str,
    property: &str,
) -> Option<OwnedValue> {
    let reply = bus
        .call_method(Some(service), path, Some(PROPERTIES), "Get", &(interface, property))
        .ok()?;
    reply.body().deserialize().ok()
}
