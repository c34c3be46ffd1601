//! Logging an agent in without a terminal. The programs in the box say what the real ones say, word for
//! word, and take their input as those do.

use crate::sessions::terminal;
use crate::world::{World, text};
use serde_json::Value;

const URL: &str = "https://claude.com/cai/oauth/authorize?code=true&client_id=9d1c&state=VvQ-_x";

/// Claude's login: an address, then a code on its input. It notes what programs had as arguments then.
const CLAUDE: &str = r#"printf 'Opening browser to sign in…\nIf the browser didn'"'"'t open, visit: %s\n' "$(cat /tmp/url)"
printf 'Paste code here if prompted > '
while read -r code; do ps -eo args > /tmp/args; case $code in
good#*) echo 'Login successful.'; touch ~/logged-in; exit 0;;
*#*) echo; echo 'Login failed: Request failed with status code 400' >&2; exit 1;;
*) echo 'Invalid code. Please make sure the full code was copied.' >&2;; esac; done"#;

/// Codex's: an address and a code to type there, then it asks its company until that is done.
const CODEX: &str = r"e=$(printf '\033'); printf '\nWelcome to Codex [v%s[90m0.169.0%s[0m]\n\n1. Open this link in your browser and sign in to your account\n   %s[94mhttps://auth.openai.com/codex/device%s[0m\n\n2. Enter this one-time code %s[90m(expires in 15 minutes)%s[0m\n   %s[94mABCD-12345%s[0m\n\n' $e $e $e $e $e $e $e $e
while [ ! -e /tmp/done ]; do sleep 0.1; done
grep -q yes /tmp/done && { echo 'Successfully logged in' >&2; exit 0; }
echo 'Error logging in: device code expired' >&2; exit 1";

fn program(world: &World, name: &str, agent: &str, script: &str) {
    let put = format!(
        "sudo tee /usr/local/bin/{agent} >/dev/null <<'X'\n#!/bin/sh\necho \"$@\" >> /tmp/ran\n{script}\nX\n\
         sudo chmod 755 /usr/local/bin/{agent}"
    );
    world.box_ok(name, &put);
}

fn claude(name: &str) -> World {
    let world = World::headless();
    world.create(name);
    program(&world, name, "claude", CLAUDE);
    world.box_ok(name, &format!("echo '{URL}' > /tmp/url"));
    world
}

fn login_of(world: &World) -> Value {
    world.json(&["list"])["boxes"][0]["logins"].clone()
}

#[test]
fn a_login_waits_in_the_box_and_takes_its_code_from_a_script() {
    let world = claude("hl");
    assert!(!login_of(&world).to_string().contains("claude"));
    let begun = world.agentbox(&["claude", "login", "hl", "--headless"]);
    let (out, err) = (text(&begun.stdout), text(&begun.stderr));
    assert_eq!(begun.status.code(), Some(0), "{out}{err}");
    assert_eq!(out, format!("{URL}\nAGENTBOX_LOGIN_URL={URL}\n"));
    assert!(err.contains("agentbox claude login hl --code CODE"), "{err}");
    assert!(!err.contains("warning:"), "{err}");
    assert_eq!(world.box_ok("hl", "cat /tmp/ran"), "auth login");

    let short = world.agentbox(&["claude", "login", "hl", "--code", "nohash"]);
    assert_eq!(short.status.code(), Some(1));
    let said = text(&short.stderr);
    assert!(said.contains("Invalid code. Please make sure the full code was copied."), "{said}");
    assert!(said.contains("--code CODE"), "{said}");

    let said = world.ok(&["claude", "login", "hl", "--code", "good#s3cr3t"]);
    assert_eq!(said, "Claude is logged in in hl\n");
    world.box_ok("hl", "test -e ~/logged-in");
    // Nothing but the login itself had the code.
    let seen = world.box_ok("hl", "cat /tmp/args; grep -r s3cr3t /dev/shm /tmp 2>/dev/null; true");
    assert!(seen.contains("claude") && !seen.contains("s3cr3t"), "{seen}");
    assert!(!world.host_log().contains("s3cr3t"));
    assert!(!world.ok(&["audit", "--json"]).contains("s3cr3t"));
    assert!(login_of(&world).to_string().contains("claude"), "{}", world.json(&["list"]));

    let none = world.agentbox(&["claude", "login", "hl", "--code", "good#again"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("no login of Claude waits in hl"), "{none:?}");
}

#[test]
fn a_login_that_fails_says_so() {
    let world = claude("hf");
    let begun = world.json(&["claude", "login", "hf"]);
    assert_eq!(
        (&begun["login"]["state"], &begun["login"]["url"]),
        (&"waiting".into(), &URL.into())
    );
    // Begun again, the first is gone.
    world.json(&["claude", "login", "hf"]);
    assert_eq!(world.box_ok("hf", "pgrep -fc 'sh /usr/local/bin/[c]laude auth login'"), "1");
    let failed = world.agentbox(&["claude", "login", "hf", "--code", "bad#x"]);
    assert_eq!(failed.status.code(), Some(1));
    let said = text(&failed.stderr);
    assert!(said.contains("Login failed: Request failed with status code 400"), "{said}");
    world.box_ok("hf", "test ! -e /dev/shm/agentbox-login-claude");

    world.box_ok("hf", "sudo rm /usr/local/bin/claude");
    let missing = world.agentbox(&["claude", "login", "hf", "--headless"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("claude"), "{missing:?}");
}

#[test]
fn an_address_of_a_box_is_shown_only_when_it_is_one() {
    let world = claude("hx");
    world.box_ok("hx", "echo 'https://claude.com.evil.example/x' > /tmp/url");
    let odd = world.agentbox(&["claude", "login", "hx", "--headless"]);
    assert_eq!(odd.status.code(), Some(0));
    let said = text(&odd.stderr);
    assert!(said.contains("warning: claude.com.evil.example is no address Claude"), "{said}");
    for hidden in
        ["https://claude.com@evil.example/", "https://claude.com/\u{202e}x", "http://claude.com/"]
    {
        world.box_ok("hx", &format!("printf '%s x\\n' '{hidden}' > /tmp/url"));
        let refused = world.agentbox(&["claude", "login", "hx", "--headless"]);
        assert_eq!(refused.status.code(), Some(1), "{hidden}");
        assert_eq!(text(&refused.stdout), "", "{hidden}");
    }
    let long = world.box_ok("hx", "printf 'https://claude.com/%05000d\\n' 1 | tee /tmp/url");
    assert_eq!(world.agentbox(&["claude", "login", "hx", "--headless"]).status.code(), Some(1));
    assert!(long.len() > 5000);
}

#[test]
fn with_a_terminal_the_code_is_asked_for() {
    let world = claude("ht");
    let mut shown = terminal(&world, &["claude", "login", "ht", "--headless"]);
    shown.shows("Code from the browser:");
    shown.keys("nohash\r");
    shown.shows("Invalid code");
    shown.keys("good#x\r");
    let (status, said) = shown.end();
    assert!(status.success() && said.contains("Claude is logged in in ht"), "{said}");
}

#[test]
fn codex_is_waited_for_until_the_browser_is_done() {
    let world = World::headless();
    world.create("hc");
    program(&world, "hc", "codex", CODEX);
    let begun = world.ok(&["codex", "login", "hc", "--headless"]);
    assert!(begun.contains("AGENTBOX_LOGIN_URL=https://auth.openai.com/codex/device\n"), "{begun}");
    assert!(begun.contains("AGENTBOX_LOGIN_CODE=ABCD-12345\n"), "{begun}");
    assert_eq!(world.box_ok("hc", "cat /tmp/ran"), "login --device-auth");
    let refused = world.agentbox(&["codex", "login", "hc", "--code", "x"]);
    assert_eq!(refused.status.code(), Some(2));
    world.box_ok("hc", "echo yes > /tmp/done");
    assert_eq!(world.json(&["codex", "login", "hc", "--wait"])["login"]["state"], "loggedIn");
    // The second one is not done in time.
    world.box_ok("hc", "rm /tmp/done");
    let again = world.json(&["codex", "login", "hc"]);
    assert_eq!(again["login"]["oneTimeCode"], "ABCD-12345");
    world.box_ok("hc", "echo no > /tmp/done");
    let failed = world.agentbox(&["codex", "login", "hc", "--wait"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(text(&failed.stderr).contains("device code expired"), "{failed:?}");
    let unsaid = world.agentbox(&["opencode", "login", "hc", "--headless"]);
    assert_eq!(unsaid.status.code(), Some(2));
    assert!(text(&unsaid.stderr).contains("--provider openai"), "{unsaid:?}");
}
