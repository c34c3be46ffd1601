//! A box's workspace in VS Code or Cursor.
//!
//! Both attach to a container by themselves when they are given an address that names it, in a form
//! that nobody wrote down but everybody uses: JSON in hexadecimal digits. Without the engine's context
//! in it the editor would ask whichever engine is current when the window is opened again.

use crate::api::Api;
use crate::engine::control_error;
use boxes::Environment;
use protocol::control::{ControlError, ErrorCode, Target};
use protocol::ctl::paths;
use protocol::links::{EditorLink, TasksFile};
use serde_json::json;

impl Api {
    /// Brings a box up and says how an editor gets to its workspace.
    pub async fn editor_link(&self, target: Target) -> Result<EditorLink, ControlError> {
        let id = self.find(&target)?;
        self.core.bring_up(&id).await?;
        let gone = || ControlError::new(ErrorCode::Usage, "the box is gone");
        let record = self.core.record(&id).ok_or_else(gone)?;
        let container = format!("agentbox-{}", record.name);
        // An engine that was named by its address may be in no context at all.
        let named = self.core.settings.engine.host.is_some();
        let context =
            (!named).then(|| boxes::engine::context_name(&Environment::current())).flatten();
        Ok(EditorLink { uri: uri(&container, context.as_deref()), container })
    }

    /// Has a box write its editor's list of terminals.
    pub async fn editor_tasks(
        &self,
        target: Target,
        regenerate: bool,
    ) -> Result<TasksFile, ControlError> {
        let id = self.find(&target)?;
        self.core.bring_up(&id).await?;
        let (boxes, record) = self.core.reach(&id).await?;
        boxes.editor_tasks(&record, regenerate).await.map_err(control_error)
    }
}

fn uri(container: &str, context: Option<&str>) -> String {
    let mut what = json!({ "containerName": format!("/{container}") });
    if let Some(context) = context {
        what["settings"] = json!({ "context": context });
    }
    let hex: String = what.to_string().bytes().map(|b| format!("{b:02x}")).collect();
    format!("vscode-remote://attached-container+{hex}{}", paths::WORKSPACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_16_49_the_address_names_container_and_context() {
        let said = |context| {
            let uri = uri("agentbox-fix", context);
            let hex = uri.strip_prefix("vscode-remote://attached-container+").unwrap();
            let hex = hex.strip_suffix("/workspace").unwrap();
            let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            let text: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
            serde_json::from_slice::<serde_json::Value>(&text).unwrap()
        };
        let with = json!({"containerName": "/agentbox-fix", "settings": {"context": "colima"}});
        assert_eq!(said(Some("colima")), with);
        assert_eq!(said(None), json!({"containerName": "/agentbox-fix"}));
    }
}
