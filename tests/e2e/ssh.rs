//! Boxes for people's own ssh: what `agentbox ssh-config` gives is all it needs.

use crate::image::full;
use crate::world::{SOON, World, text};
use agentbox_e2e::wait::eventually_or;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The configuration in a file of its own, once all of these boxes are in it.
#[track_caller]
fn config(world: &World, boxes: &[&str]) -> PathBuf {
    let text = eventually_or(SOON, "all boxes", || {
        let text = world.ok(&["ssh-config"]);
        let known = |name: &&str| text.contains(&format!("Host agentbox-{name} {name}\n"));
        if boxes.iter().all(known) { Ok(text) } else { Err(text) }
    });
    let file = world.dir().join("boxes");
    std::fs::write(&file, text).unwrap();
    file
}

fn ssh(world: &World, config: &Path, args: &[&str]) -> Output {
    let mut command = world.command("ssh");
    command.arg("-F").arg(config).args(args).output().unwrap()
}

/// A command, as soon as the box's server is up.
#[track_caller]
fn answers(world: &World, config: &Path, name: &str, command: &str) -> String {
    eventually_or(SOON, &format!("ssh {name}"), || {
        let output = ssh(world, config, &[name, command]);
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    })
}

fn sftp(world: &World, config: &Path, name: &str, batch: &str) -> Output {
    let file = world.dir().join("batch");
    std::fs::write(&file, batch).unwrap();
    let mut command: Command = world.command("sftp");
    command.arg("-F").arg(config).arg("-b").arg(&file).arg(name).current_dir(world.project());
    command.output().unwrap()
}

#[test]
fn ssh_and_sftp_know_boxes_by_their_names() {
    let world = full("");
    let (harbor, lagoon) = (world.create("harbor"), world.create("lagoon"));
    let file = config(&world, &["harbor", "lagoon"]);
    assert_eq!(answers(&world, &file, "harbor", "hostname; whoami"), "harbor\nvscode\n");
    assert_eq!(answers(&world, &file, "agentbox-lagoon", "hostname"), "lagoon\n");
    let code = ssh(
        &world,
        &file,
        &["harbor", "cd /workspace && git rev-parse --abbrev-ref HEAD && exit 7"],
    );
    assert_eq!((code.status.code(), text(&code.stdout)), (Some(7), "agentbox/harbor\n".into()));

    let copied =
        sftp(&world, &file, "harbor", "put README.md /tmp/up\nget /workspace/README.md down\n");
    assert!(copied.status.success(), "{copied:?}");
    assert_eq!(world.box_ok("harbor", "cat /tmp/up"), "# Shop");
    assert_eq!(std::fs::read_to_string(world.project().join("down")).unwrap(), "# Shop\n");

    // It is known beforehand whom to expect: nothing is learnt at the first visit.
    let text_of = std::fs::read_to_string(&file).unwrap();
    assert!(text_of.contains("StrictHostKeyChecking yes"), "{text_of}");
    let port = |name: &str| {
        let part =
            text_of.split("\nHost ").find(|part| part.starts_with(&format!("agentbox-{name} ")));
        let line = part.unwrap().lines().find_map(|l| l.trim().strip_prefix("Port "));
        line.unwrap().to_owned()
    };
    let other = format!("Port={}", port("lagoon"));
    let strange = ssh(&world, &file, &["-o", &other, "harbor", "true"]);
    assert_eq!(strange.status.code(), Some(255));
    assert!(text(&strange.stderr).contains("Host key verification failed"), "{strange:?}");
    // One box's key opens no other box.
    let key = |made: &serde_json::Value| {
        let id = made["id"].as_str().unwrap();
        world.home().join("boxes").join(id).join("ssh/id_ed25519")
    };
    let wrong = format!("IdentityFile={}", key(&lagoon).display());
    assert!(key(&lagoon).exists());
    let plain = world.dir().join("plain");
    let only_wrong: String = text_of
        .lines()
        .map(
            |line| {
                if line.contains("IdentityFile") { String::new() } else { line.to_owned() + "\n" }
            },
        )
        .collect();
    std::fs::write(&plain, only_wrong).unwrap();
    let refused = ssh(&world, &plain, &["-o", &wrong, "harbor", "true"]);
    assert_eq!(refused.status.code(), Some(255));
    assert!(text(&refused.stderr).contains("Permission denied (publickey)"), "{refused:?}");
    let right = format!("IdentityFile={}", key(&harbor).display());
    assert!(ssh(&world, &plain, &["-o", &right, "harbor", "true"]).status.success());

    // The person's own file, with one line in it, does the same, and follows a restart.
    let own = world.home().parent().unwrap().join(".ssh/config");
    world.ok(&["ssh-config", "--install", "--yes"]);
    assert!(own.exists());
    world.ok(&["stop", "harbor"]);
    world.ok(&["start", "harbor"]);
    assert_eq!(answers(&world, &own, "harbor", "hostname"), "harbor\n");
    world.ok(&["ssh-config", "--uninstall", "--yes"]);
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "");
}

/// A box's files, in a folder of this computer.
#[test]
fn a_boxs_files_are_a_folder_that_cannot_harm_this_computer() {
    let world = full("");
    world.create("shelf");
    let folder = world.home().join("mounts/shelf");
    assert_eq!(world.ok(&["open", "shelf", "--print"]), format!("{}\n", folder.display()));
    assert_eq!(world.json(&["open", "shelf", "--print"])["mount"]["mounted"], false);
    let log = world.dir().join("opened");
    world.host_program("xdg-open", &format!("#!/bin/sh\nls \"$1\" > {}\n", log.display()));
    world.ok(&["stop", "shelf"]);
    assert_eq!(world.ok(&["open", "shelf"]), format!("opened {}\n", folder.display()));
    assert!(std::fs::read_to_string(&log).unwrap().contains("README.md"));
    assert_eq!(world.json(&["open", "shelf", "--print"])["mount"]["mounted"], true);

    // Both ways, and again without mounting again.
    assert_eq!(std::fs::read_to_string(folder.join("README.md")).unwrap(), "# Shop\n");
    std::fs::write(folder.join("note"), "from here").unwrap();
    assert_eq!(world.box_ok("shelf", "cat note; stat -c %U note"), "from herevscode");
    // An editor of this computer would do what the box's files say.
    assert_eq!(world.agentbox(&["open", "shelf", "--in", "vscode"]).status.code(), Some(2));

    // Links stay in the box: one to a file of this computer shows the box's file of that name or none.
    let secret = world.dir().join("secret");
    std::fs::write(&secret, "of this computer").unwrap();
    let link = format!(
        "ln -s {} outside; ln -s /etc/hostname inside; ln -s ../../../../tmp up",
        secret.display()
    );
    world.box_ok("shelf", &link);
    assert!(std::fs::read_to_string(folder.join("outside")).is_err());
    assert_eq!(std::fs::read_to_string(folder.join("inside")).unwrap(), "shelf\n");
    assert!(!folder.join("up").join(world.dir().file_name().unwrap()).exists());
    // A repository of a box runs nothing here.
    let trap = world.dir().join("trap");
    let hook = format!("git config core.fsmonitor 'touch {}; false'", trap.display());
    world.box_ok("shelf", &hook);
    let status = world.command("git").arg("status").current_dir(&folder).output().unwrap();
    assert!(text(&status.stderr).contains("dubious ownership"), "{status:?}");
    assert!(!trap.exists());
    world.box_ok("shelf", "printf '#!/bin/sh\\necho ran\\n' > run.sh; chmod +x run.sh");
    assert!(world.command(folder.join("run.sh")).output().is_err(), "a program of the box ran");

    assert_eq!(
        world.ok(&["open", "shelf", "--unmount"]),
        format!("unmounted {}\n", folder.display())
    );
    assert!(!folder.exists());
    assert_eq!(world.ok(&["open", "shelf", "--unmount"]), "");
    // It ends with the box, too.
    world.ok(&["open", "shelf"]);
    world.ok(&["destroy", "shelf", "--yes"]);
    eventually_or(2 * SOON, "the folder being empty", || {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        if mounts.contains("mounts/shelf") { Err(mounts) } else { Ok(()) }
    });
}

#[test]
fn what_a_folder_needs_and_lacks_is_said() {
    let mut world = World::headless();
    world.create("small");
    let refused = world.agentbox(&["open", "small"]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("small has no ssh server") && said.contains("box.stage"), "{said}");
    // One that does not know what it is asked to keep from happening is not used.
    world.host_program("sshfs", "#!/bin/sh\necho usage: sshfs\n");
    let old = world.agentbox(&["open", "small"]);
    assert!(text(&old.stderr).contains("contain_symlinks"), "{old:?}");
    world.set("PATH", "/nonexistent");
    let none = world.agentbox(&["open", "small"]);
    assert_eq!(none.status.code(), Some(1));
    let said = text(&none.stderr);
    assert!(said.contains("sshfs is not installed") && said.contains("hint: "), "{said}");
}
