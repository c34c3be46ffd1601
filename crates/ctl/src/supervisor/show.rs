//! What people see of units.

use protocol::supervisor::{LogEvent, Port, Status, Stream};

/// Several lines of text without commands to the terminal.
pub fn harmless(text: &str) -> String {
    text.lines().map(protocol::text::visible).collect::<Vec<_>>().join("\n")
}

/// `<time> O|E <line>`; colours are left to whoever asked for them.
pub fn log(event: &LogEvent) -> String {
    let stream = if event.stream == Stream::Stdout { 'O' } else { 'E' };
    format!("{} {stream} {}\n", event.ts, event.line)
}

pub fn status(status: &Status) -> String {
    let mut text = String::new();
    if let Some(why) = &status.config_error {
        text.push_str(&format!("agentbox.yaml has mistakes:\n{}\n\n", harmless(why)));
    }
    if !status.tasks.is_empty() {
        let rows = status.tasks.iter().map(|task| {
            let exit = task.last_exit_code.map(|code| code.to_string());
            vec![
                task.name.clone(),
                task.state.as_str().to_owned(),
                exit.unwrap_or_else(|| "-".into()),
                list(&task.blocked_on),
                task.command.clone(),
            ]
        });
        text.push_str("TASKS\n");
        text.push_str(&table(&["NAME", "STATE", "EXIT", "BLOCKED ON", "COMMAND"], rows.collect()));
        text.push('\n');
    }
    let rows: Vec<Vec<String>> = status
        .services
        .iter()
        .map(|service| {
            vec![
                service.name.clone(),
                service.state.as_str().to_owned(),
                service.pid.map_or_else(|| "-".into(), |pid| pid.to_string()),
                service.restarts.to_string(),
                list(&service.blocked_on),
                service.command.clone(),
            ]
        })
        .collect();
    text.push_str("SERVICES\n");
    if rows.is_empty() {
        text.push_str("(none)\n");
    } else {
        let heads = ["NAME", "STATE", "PID", "RESTARTS", "BLOCKED ON", "COMMAND"];
        text.push_str(&table(&heads, rows));
    }
    if let Some(web) = &status.web_proxy {
        let error = web.error.as_ref().map(|e| format!(": {e}")).unwrap_or_default();
        text.push_str(&format!(
            "\nweb: port {} → {}, {}{error}\n",
            web.listen, web.target, web.state
        ));
    }
    text.push_str(&ports(&status.ports));
    for warning in &status.warnings {
        text.push_str(&format!("warning: {}\n", harmless(warning)));
    }
    text
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "-".into() } else { names.join(", ") }
}

fn ports(ports: &[Port]) -> String {
    if ports.is_empty() {
        return String::new();
    }
    let mut text = "\nPORTS\n".to_owned();
    let mut other = Vec::new();
    for port in ports {
        match &port.service {
            Some(service) => text.push_str(&format!("{:<6} {service}\n", port.port)),
            None => other.push(port.port.to_string()),
        }
    }
    if !other.is_empty() {
        text.push_str(&format!("other ({}): {}\n", other.len(), other.join(", ")));
    }
    text
}

/// Columns as wide as they must be; the last one as it is.
fn table(heads: &[&str], rows: Vec<Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|row| row.iter().map(|c| protocol::text::visible(c)).collect())
        .collect();
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    let width = |at: usize| {
        let cells = std::iter::once(&heads).chain(&rows).filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut text = String::new();
    for row in std::iter::once(&heads).chain(&rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_nobody_claims_share_a_line() {
        let port = |port, service: Option<&str>| Port { port, service: service.map(Into::into) };
        let text = ports(&[port(22, None), port(3000, Some("web")), port(6080, None)]);
        assert_eq!(text, "\nPORTS\n3000   web\nother (2): 22, 6080\n");
    }

    #[test]
    fn columns_line_up() {
        let rows = vec![vec!["install".into(), "done".into()], vec!["a".into(), "waiting".into()]];
        assert_eq!(
            table(&["NAME", "STATE"], rows),
            "NAME     STATE\ninstall  done\na        waiting\n"
        );
    }
}
