//! The bare engine: the least calls that could do what a command of ours does.

use crate::measure::timed;
use crate::world;
use bollard::Docker;
use bollard::models::{ContainerConfig, ContainerCreateBody, HostConfig, NetworkCreateRequest};
use bollard::query_parameters as query;
use futures_util::StreamExt;
use std::time::Duration;
use tokio::runtime::Runtime;

pub struct Raw {
    runtime: Runtime,
    docker: Docker,
}

impl Raw {
    pub fn connect() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let docker = runtime.block_on(world::docker()).expect("an engine");
        Self { runtime, docker }
    }

    /// Network, container, start, one exec.
    pub fn create(&self, image: &str, name: &str) -> Duration {
        timed(|| {
            self.runtime.block_on(async {
                let network = NetworkCreateRequest { name: name.to_owned(), ..Default::default() };
                self.docker.create_network(network).await.unwrap();
                let host = HostConfig { network_mode: Some(name.into()), ..Default::default() };
                let spec = ContainerCreateBody {
                    image: Some(image.to_owned()),
                    host_config: Some(host),
                    ..Default::default()
                };
                let options = query::CreateContainerOptionsBuilder::default().name(name).build();
                self.docker.create_container(Some(options), spec).await.unwrap();
                self.begin(name).await;
            });
        })
    }

    pub fn start(&self, name: &str) -> Duration {
        timed(|| self.runtime.block_on(self.begin(name)))
    }

    /// Started, and one command has run in it.
    async fn begin(&self, name: &str) {
        self.docker.start_container(name, None::<query::StartContainerOptions>).await.unwrap();
        let config = bollard::models::ExecConfig {
            cmd: Some(vec!["/bin/true".into()]),
            attach_stdout: Some(true),
            ..Default::default()
        };
        let exec = self.docker.create_exec(name, config).await.unwrap();
        let started = self.docker.start_exec(&exec.id, None).await.unwrap();
        if let bollard::exec::StartExecResults::Attached { mut output, .. } = started {
            while output.next().await.is_some() {}
        }
    }

    pub fn stop(&self, name: &str) -> Duration {
        let stop = self.docker.stop_container(name, None::<query::StopContainerOptions>);
        timed(|| self.runtime.block_on(stop).unwrap())
    }

    pub fn pause_and_unpause(&self, name: &str) -> Duration {
        timed(|| {
            self.runtime.block_on(async {
                self.docker.pause_container(name).await.unwrap();
                self.docker.unpause_container(name).await.unwrap();
            });
        })
    }

    /// The container as an image, frozen meanwhile.
    pub fn commit(&self, name: &str, repo: &str) -> Duration {
        let options = query::CommitContainerOptionsBuilder::default()
            .container(name)
            .repo(repo)
            .tag("1")
            .pause(true)
            .build();
        let commit = self.docker.commit_container(options, ContainerConfig::default());
        timed(|| drop(self.runtime.block_on(commit).unwrap()))
    }

    /// An archive, unpacked in a container's folder.
    pub fn unpack(&self, name: &str, folder: &str, archive: Vec<u8>) -> Duration {
        let options = query::UploadToContainerOptionsBuilder::default().path(folder).build();
        let body = bollard::body_full(archive.into());
        let upload = self.docker.upload_to_container(name, Some(options), body);
        timed(|| self.runtime.block_on(upload).unwrap())
    }

    pub fn remove(&self, name: &str) {
        self.runtime.block_on(async {
            let force = query::RemoveContainerOptionsBuilder::default().force(true).v(true).build();
            self.docker.remove_container(name, Some(force)).await.unwrap();
            let _ = self.docker.remove_network(name).await;
        });
    }

    /// What a container wrote beyond its image, and its memory without file caches, in bytes.
    pub fn takes(&self, name: &str) -> (u64, u64) {
        self.runtime.block_on(async {
            let options = query::InspectContainerOptionsBuilder::default().size(true).build();
            let seen = self.docker.inspect_container(name, Some(options)).await.unwrap();
            let options = query::StatsOptionsBuilder::default().stream(false).build();
            let stats = self.docker.stats(name, Some(options)).next().await.unwrap().unwrap();
            let memory = stats.memory_stats.unwrap();
            let cache = memory.stats.and_then(|s| s.get("total_inactive_file").copied());
            let used = memory.usage.unwrap_or(0).saturating_sub(cache.unwrap_or(0));
            (seen.size_rw.unwrap_or(0).unsigned_abs(), used)
        })
    }
}
