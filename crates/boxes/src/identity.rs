//! Who a box is: the one place its variables and what carry fills into files come from.

use crate::{CreateSpec, Record};
use ::project::render::Values;
use protocol::ctl::Identity;
use std::path::Path;

impl Record {
    /// What the box is told of itself.
    pub fn identity(&self) -> Identity {
        Identity {
            id: self.id.clone(),
            name: self.name.clone(),
            host_workspace: text(&self.workspace),
            project_root: text(&self.project_root),
            project_index: self.index,
        }
    }

    /// What stands for a box in a file that is copied into it.
    pub(crate) fn values(&self) -> Values {
        let variables = self.identity().variables();
        Values::from_env(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| value.clone())
        })
    }
}

impl CreateSpec {
    /// The same, before there is a record.
    pub(crate) fn identity(&self, workspace: &Path) -> Identity {
        Identity {
            id: self.id.clone(),
            name: self.name.clone(),
            host_workspace: text(workspace),
            project_root: text(&self.root),
            project_index: self.index,
        }
    }
}

/// A path that is only nearly right would be worse than none.
fn text(path: &Path) -> Option<String> {
    path.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::project::render::render;

    fn record(workspace: &str) -> Record {
        serde_json::from_value(serde_json::json!({
            "id": "b00000001", "name": "fix", "index": 2, "projectRoot": workspace, "project": "p",
            "workspace": workspace, "container": "c", "network": "n", "image": "i", "createdAt": 0,
            "branch": null, "base": null, "repo": null, "channel": "socket", "publish": null,
        }))
        .unwrap()
    }

    #[test]
    fn carry_fills_in_what_the_box_is_told() {
        let record = record("/home/me/it's \"odd\" $1");
        for (name, value) in record.identity().variables() {
            let done = render(&format!("{{{{{name}}}}}"), true, [], &record.values()).unwrap();
            let is_placeholder = !["AGENTBOX", "AGENTBOX_PROJECT_INDEX"].contains(&name);
            assert_eq!(done.text == value, is_placeholder, "{name}: {}", done.text);
        }
    }

    #[test]
    fn what_is_no_line_is_the_same_for_both() {
        let record = record("/two\nlines");
        let text = "{{AGENTBOX_HOST_WORKSPACE}}";
        assert_eq!(render(text, true, [], &record.values()).unwrap().text, text);
    }
}
