//! A container engine inside a box, and the powers it takes (D11).
//!
//! No other box gets any of this: mounting file systems and making bridges, in a container without
//! system call filters, is nearly as much as being root on the engine's machine. The person asks
//! for it; neither the box nor its repository can.

use crate::engine::SLOW;
use crate::labels::{self, Labels};
use crate::{Boxes, Error};
use bollard::models::{
    DeviceMapping, HostConfig, HostConfigCgroupnsModeEnum, Mount, MountType, VolumeCreateRequest,
};
use protocol::BoxId;
use protocol::ctl::paths;

/// Where the inner engine keeps its images. Not in the box's own layer: overlays do not nest.
fn volume(id: &BoxId) -> String {
    format!("agentbox-docker-{id}")
}

pub(crate) fn empower(host: &mut HostConfig, id: &BoxId) {
    host.cap_add = Some(vec!["SYS_ADMIN".to_owned(), "NET_ADMIN".to_owned()]);
    let options = ["apparmor=unconfined", "seccomp=unconfined"].map(str::to_owned);
    host.security_opt.get_or_insert_default().extend(options);
    host.devices = Some(vec![DeviceMapping {
        path_on_host: Some("/dev/fuse".to_owned()),
        path_in_container: Some("/dev/fuse".to_owned()),
        cgroup_permissions: Some("rwm".to_owned()),
    }]);
    // With the engine's own, the control groups are a tree the inner engine cannot write to.
    host.cgroupns_mode = Some(HostConfigCgroupnsModeEnum::PRIVATE);
    host.mounts.get_or_insert_default().push(Mount {
        target: Some(paths::DOCKER_DATA.to_owned()),
        source: Some(volume(id)),
        typ: Some(MountType::VOLUME),
        ..Mount::default()
    });
}

impl Boxes {
    /// Made before the container: a volume the engine makes by itself has no labels.
    pub(crate) async fn docker_volume(&self, id: &BoxId, mut labels: Labels) -> Result<(), Error> {
        if self.engine.profile().rootless {
            return Err(Error::NoInnerEngine);
        }
        labels.insert(labels::ROLE.to_owned(), labels::ROLE_DOCKER_DATA.to_owned());
        let request = VolumeCreateRequest {
            name: Some(volume(id)),
            labels: Some(labels),
            ..VolumeCreateRequest::default()
        };
        let request = self.engine.docker().create_volume(request);
        self.engine.ask("make the volume for the box's own engine", SLOW, request).await.map(drop)
    }
}
