//! Images on a real engine: import, build, and what a failing one says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use agentbox_boxes::{Error, ImageSpec, Stage, progress};
use bollard::query_parameters::RemoveImageOptions;
use protocol::boxes::{Progress, StepState};
use std::sync::{Arc, Mutex};
use support::{Install, ctl, docker, engine, expect_err, random};

#[tokio::test]
async fn a_root_file_system_is_imported_under_its_name() {
    let engine = engine().await;
    let image = format!("agentbox-test/base:{}", u32::from_be_bytes(random()));
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(2);
    header.set_mode(0o644);
    tar.append_data(&mut header, "etc/mark", &b"ok"[..]).unwrap();
    let bytes = std::io::Cursor::new(tar.into_inner().unwrap());
    engine.import_image(&image, bytes).await.unwrap();
    let docker = docker(&engine);
    assert!(docker.inspect_image(&image).await.is_ok());
    docker.remove_image(&image, None::<RemoveImageOptions>, None).await.unwrap();
}

#[tokio::test]
async fn the_box_image_is_built_once_and_labelled() {
    let install = Install::new().await;
    let tag = install.image().await;
    let docker = docker(install.boxes.engine());
    let first = docker.inspect_image(&tag).await.unwrap();
    assert_eq!(install.image().await, tag);
    assert_eq!(docker.inspect_image(&tag).await.unwrap().id, first.id);
    let config = first.config.unwrap();
    let labels = config.labels.unwrap();
    assert_eq!(labels["agentbox.role"], "image");
    assert!(labels.contains_key("agentbox.owner") && labels.contains_key("agentbox.certificates"));
    let env = config.env.unwrap();
    assert!(env.contains(&"LANG=C.UTF-8".to_owned()));
    assert!(env.contains(&"NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt".to_owned()));
}

#[tokio::test]
async fn a_failing_step_is_shown_with_its_output() {
    let install = Install::new().await;
    let mark = u32::from_be_bytes(random());
    let mut spec = ImageSpec::new(Stage::Core, ctl(), vec![]);
    spec.dockerfile =
        format!("FROM debian:bookworm-slim AS core\nRUN echo {mark} before it broke && exit 3\n");
    let seen: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let watcher = {
        let seen = seen.clone();
        Arc::new(move |progress: Progress| seen.lock().unwrap().push(progress))
    };
    let error = expect_err(install.boxes.ensure_image(&spec, watcher).await);
    let Error::Build { step, output, .. } = &error else { panic!("{error}") };
    assert!(step.starts_with("Step 2/") && step.contains(": RUN echo"), "{step}");
    assert!(output.contains(&format!("{mark} before it broke")), "{output}");
    let seen = seen.lock().unwrap();
    assert!(
        seen.iter().any(|p| p.fraction.is_some_and(|done| done > 0.0 && done < 1.0)),
        "{seen:?}"
    );
    assert_eq!(seen.last().unwrap().state, StepState::Failed);
}

#[tokio::test]
async fn a_base_image_that_cannot_be_had_comes_with_a_hint() {
    let install = Install::new().await;
    let mut spec = ImageSpec::new(Stage::Core, ctl(), vec![]);
    spec.dockerfile = "FROM localhost:1/agentbox-test/none:x\n".to_owned();
    let error = expect_err(install.boxes.ensure_image(&spec, progress::silent()).await);
    assert!(
        matches!(&error, Error::NoBaseImage { image, .. } if image.ends_with("none:x")),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("make base-image"));
}
