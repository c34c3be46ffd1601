//! Native dialogs and windows, read and pressed over the accessibility bus.
//!
//! This is what a screen reader uses, so it sees labels and presses buttons of real GTK widgets, and
//! of pages in a webview too. Every node is one or more calls into the app, and the app may change its
//! windows at any moment: a node that vanishes during a walk is passed over, and the walk is repeated.

use crate::session::{Session, connect};
use crate::wait::{eventually, eventually_or};
use std::time::Duration;
use zbus::blocking::{Connection, Proxy};
use zbus::zvariant::OwnedObjectPath;

const ACCESSIBLE: &str = "org.a11y.atspi.Accessible";
const LABEL: u32 = 29;
const BUTTONS: [u32; 4] = [43, 62, 7, 44]; // push button, toggle button, check box, radio button
const FOCUSED: u64 = 1 << 12;
const SENSITIVE: u64 = 1 << 24;
const SHOWING: u64 = 1 << 25;
/// Deeper than any dialog; a webview's page stays within it as well.
const DEPTH: usize = 40;

/// The accessibility bus of a session.
pub struct Desktop {
    bus: Connection,
}

/// One widget. Cheap to copy around; every question is a call.
#[derive(Clone)]
struct Node<'a> {
    bus: &'a Connection,
    service: String,
    path: OwnedObjectPath,
}

impl Desktop {
    #[track_caller]
    pub fn new(session: &Session) -> Self {
        let address: String = session
            .bus()
            .call_method(
                Some("org.a11y.Bus"),
                "/org/a11y/bus",
                Some("org.a11y.Bus"),
                "GetAddress",
                &(),
            )
            .and_then(|reply| reply.body().deserialize())
            .expect("the accessibility bus");
        Self { bus: connect(&address) }
    }

    /// The names of all applications with a window.
    pub fn apps(&self) -> Vec<String> {
        self.root().children().iter().filter_map(Node::name).collect()
    }

    /// The titles of an application's visible windows and dialogs.
    pub fn windows(&self, app: &str) -> Vec<String> {
        self.visible(app).iter().filter_map(Node::name).collect()
    }

    /// All text a window shows, in the order a screen reader would read it: labels, fields, buttons.
    pub fn texts(&self, app: &str, window: &str) -> Vec<String> {
        let Some(window) = self.window(app, window) else { return Vec::new() };
        let mut texts = Vec::new();
        window.walk(DEPTH, &mut |node| {
            texts
                .extend(node.text().or_else(|| node.name()).filter(|text| !text.trim().is_empty()));
            false
        });
        texts
    }

    /// What a screen reader says of each part of a window: its name, and the sentence about it.
    pub fn spoken(&self, app: &str, window: &str) -> Vec<(String, String)> {
        let Some(window) = self.window(app, window) else { return Vec::new() };
        let mut parts = Vec::new();
        window.walk(DEPTH, &mut |node| {
            let (name, about) = (node.name(), node.description());
            parts.push((name.unwrap_or_default(), about.unwrap_or_default()));
            false
        });
        parts
    }

    /// The names of the buttons a window shows, in their order.
    pub fn buttons(&self, app: &str, window: &str) -> Vec<String> {
        let Some(window) = self.window(app, window) else { return Vec::new() };
        let mut names = Vec::new();
        window.walk(DEPTH, &mut |node| {
            if node.is_button() {
                names.extend(node.name());
            }
            false
        });
        names
    }

    /// The name of what has the keyboard in a window.
    pub fn focused(&self, app: &str, window: &str) -> Option<String> {
        let mut found = None;
        self.window(app, window)?.walk(DEPTH, &mut |node| {
            let hit = node.has(FOCUSED | SHOWING);
            if hit {
                found = node.name();
            }
            hit
        });
        found
    }

    /// Whether such a window shows such a button, ready to be pressed.
    pub fn exists(&self, app: &str, window: &str, button: &str) -> bool {
        self.button(app, window, button).is_some()
    }

    /// Presses a button in the window whose title contains `window`, as soon as it is there.
    #[track_caller]
    pub fn press(&self, app: &str, window: &str, button: &str, deadline: Duration) {
        let what = format!("pressing “{button}” in a window “{window}” of {app}");
        eventually_or(deadline, &what, || match self.button(app, window, button) {
            Some(node) if node.act() => Ok(()),
            _ => Err(self.describe(app)),
        });
    }

    /// Presses it now, if it is there.
    pub fn try_press(&self, app: &str, window: &str, button: &str) -> bool {
        self.button(app, window, button).is_some_and(|node| node.act())
    }

    /// Where a button is on the screen, its middle; for a click with the mouse.
    #[track_caller]
    pub fn place(&self, app: &str, window: &str, button: &str, deadline: Duration) -> (i32, i32) {
        let what = format!("the place of “{button}” in a window “{window}” of {app}");
        eventually_or(deadline, &what, || {
            let found = self.button(app, window, button).and_then(|node| node.middle());
            found.ok_or_else(|| self.describe(app))
        })
    }

    /// Waits until an application shows no window whose title contains `window`.
    #[track_caller]
    pub fn gone(&self, app: &str, window: &str, deadline: Duration) {
        let what = format!("the window “{window}” of {app} going away");
        eventually(deadline, &what, || self.window(app, window).is_none().then_some(()));
    }

    fn describe(&self, app: &str) -> String {
        let windows: Vec<_> = self
            .windows(app)
            .iter()
            .map(|w| format!("“{w}” with {:?}", self.buttons(app, w)))
            .collect();
        format!("windows of {app}: [{}]; applications: {:?}", windows.join(", "), self.apps())
    }

    fn root(&self) -> Node<'_> {
        Node {
            bus: &self.bus,
            service: "org.a11y.atspi.Registry".into(),
            path: OwnedObjectPath::try_from("/org/a11y/atspi/accessible/root")
                .expect("a constant path"),
        }
    }

    fn visible(&self, app: &str) -> Vec<Node<'_>> {
        let apps = self.root().children();
        let of_app = apps.iter().filter(|node| node.name().is_some_and(|name| name == app));
        of_app.flat_map(Node::children).filter(|window| window.has(SHOWING)).collect()
    }

    fn window(&self, app: &str, title: &str) -> Option<Node<'_>> {
        self.visible(app)
            .into_iter()
            .find(|window| window.name().is_some_and(|name| name.contains(title)))
    }

    fn button(&self, app: &str, window: &str, name: &str) -> Option<Node<'_>> {
        let mut found = None;
        self.window(app, window)?.walk(DEPTH, &mut |node| {
            let hit = node.is_button()
                && node.name().is_some_and(|n| n == name)
                && node.has(SENSITIVE | SHOWING);
            if hit {
                found = Some(node.clone());
            }
            hit
        });
        found
    }
}

impl<'a> Node<'a> {
    /// Depth first; ends when `visit` says so. Hidden branches are not entered.
    fn walk(&self, depth: usize, visit: &mut dyn FnMut(&Self) -> bool) -> bool {
        if visit(self) {
            return true;
        }
        depth > 0
            && self
                .children()
                .iter()
                .any(|child| child.has(SHOWING) && child.walk(depth - 1, visit))
    }

    fn children(&self) -> Vec<Node<'a>> {
        let children: Vec<(String, OwnedObjectPath)> =
            self.ask(ACCESSIBLE, "GetChildren", &()).unwrap_or_default();
        children.into_iter().map(|(service, path)| Node { bus: self.bus, service, path }).collect()
    }

    fn name(&self) -> Option<String> {
        self.proxy(ACCESSIBLE)?.get_property("Name").ok()
    }

    fn description(&self) -> Option<String> {
        self.proxy(ACCESSIBLE)?.get_property("Description").ok()
    }

    fn role(&self) -> u32 {
        self.ask(ACCESSIBLE, "GetRole", &()).unwrap_or_default()
    }

    fn is_button(&self) -> bool {
        BUTTONS.contains(&self.role())
    }

    /// The content of a field or label; a label's name is the same text, so it is not asked twice.
    fn text(&self) -> Option<String> {
        if self.role() == LABEL {
            return None;
        }
        self.ask("org.a11y.atspi.Text", "GetText", &(0i32, -1i32))
    }

    fn has(&self, states: u64) -> bool {
        let words: Vec<u32> = self.ask(ACCESSIBLE, "GetState", &()).unwrap_or_default();
        let set = words.iter().rev().fold(0u64, |set, word| set << 32 | u64::from(*word));
        set & states == states
    }

    fn act(&self) -> bool {
        self.ask("org.a11y.atspi.Action", "DoAction", &0i32).unwrap_or(false)
    }

    fn middle(&self) -> Option<(i32, i32)> {
        let on_screen = 0u32;
        let (x, y, width, height): (i32, i32, i32, i32) =
            self.ask("org.a11y.atspi.Component", "GetExtents", &on_screen)?;
        Some((x + width / 2, y + height / 2))
    }

    fn ask<A, T>(&self, interface: &str, method: &str, args: &A) -> Option<T>
    where
        A: serde::Serialize + zbus::zvariant::DynamicType,
        T: for<'d> serde::Deserialize<'d> + zbus::zvariant::Type,
    {
        let reply = self
            .bus
            .call_method(Some(self.service.as_str()), &self.path, Some(interface), method, args)
            .ok()?;
        reply.body().deserialize().ok()
    }

    fn proxy(&self, interface: &'static str) -> Option<Proxy<'a>> {
        use zbus::proxy::CacheProperties;
        zbus::blocking::proxy::Builder::<Proxy<'a>>::new(self.bus)
            .destination(self.service.clone())
            .ok()?
            .path(self.path.clone())
            .ok()?
            .interface(interface)
            .ok()?
            .cache_properties(CacheProperties::No)
            .build()
            .ok()
    }
}
