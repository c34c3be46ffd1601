//! The networks of the engine, which no box reaches by the host's proxy.

use crate::engine::QUICK;
use crate::{Boxes, Error};
use bollard::query_parameters::ListNetworksOptions;

impl Boxes {
    /// The addresses of every network the engine has, as it writes them: `172.17.0.0/16`.
    pub async fn subnets(&self) -> Result<Vec<String>, Error> {
        let docker = self.engine.docker();
        let list = docker.list_networks(None::<ListNetworksOptions>);
        let all = self.engine.ask("list the networks", QUICK, list).await?;
        let configs = all.into_iter().filter_map(|network| network.ipam?.config).flatten();
        Ok(configs.filter_map(|config| config.subnet).collect())
    }
}
