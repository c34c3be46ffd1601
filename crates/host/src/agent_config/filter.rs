//! What must not go along: programs of this computer, and logins.

use serde_json::{Map, Value};

/// Where other systems keep programs that no box has.
const ELSEWHERE: [&str; 6] =
    ["/Applications/", "/opt/homebrew/", "/Library/", "/System/", "/private/", "/Users/"];

/// Whether a command names something that is on this computer alone.
pub fn is_host_only(command: &str, home: &str) -> bool {
    let home = home.trim_end_matches('/');
    let own = !home.is_empty() && command.contains(&format!("{home}/"));
    let tilde = command.split_whitespace().any(|word| word.starts_with("~/"));
    own || tilde || ELSEWHERE.iter().any(|place| command.trim_start().starts_with(place))
}

/// Whether a variable or a key is likely to hold a login.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["TOKEN", "KEY", "SECRET", "PASSWORD", "AUTHORIZATION", "CREDENTIAL", "COOKIE"]
        .iter()
        .any(|word| name.contains(word))
}

/// Takes out entries of an object that hold logins.
pub fn without_secrets(value: Option<&mut Value>) {
    if let Some(Value::Object(map)) = value {
        map.retain(|name, _| !is_secret(name));
    }
}

/// Servers an agent starts or calls: those of this computer go, the rest loses its logins.
pub fn servers(servers: &mut Map<String, Value>, home: &str) {
    servers.retain(|_, server| {
        let command = match server.get("command") {
            Some(Value::String(command)) => command.clone(),
            Some(Value::Array(words)) => {
                words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
            }
            _ => String::new(),
        };
        !is_host_only(&command, home)
    });
    for server in servers.values_mut() {
        for place in ["env", "environment", "headers"] {
            without_secrets(server.get_mut(place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_this_computer_are_known() {
        for own in [
            "/home/ada/bin/hook.sh",
            "node /home/ada/x.js",
            "~/bin/x",
            "sh ~/x",
            "/Applications/A.app/run",
            "/opt/homebrew/bin/node",
        ] {
            assert!(is_host_only(own, "/home/ada"), "{own}");
        }
        for fine in ["./hook.sh", "npx -y server", "/usr/bin/true", "/home/adah/x", "echo a~/b"] {
            assert!(!is_host_only(fine, "/home/ada"), "{fine}");
        }
    }

    #[test]
    fn logins_are_known_by_their_names() {
        for name in ["API_KEY", "githubToken", "Authorization", "DB_PASSWORD"] {
            assert!(is_secret(name), "{name}");
        }
        assert!(!is_secret("ANTHROPIC_MODEL") && !is_secret("EDITOR"));
    }
}
