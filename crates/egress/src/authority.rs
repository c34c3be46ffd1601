//! The certificate authority that boxes trust, and the certificates the proxy shows them.
//!
//! One authority per installation, in a folder of its own that no box sees. Its key signs and does nothing
//! else: what the proxy speaks TLS with is another key, in memory only. A certificate names one host, so
//! that no program takes a connection to one host for a connection to another.
//!
//! The surprising thing: there may be two authorities. The next one is made long before the present one
//! expires, and both are given to boxes to trust; the next one signs only when boxes have had time to be
//! started again.

mod folder;

use crate::host_name::HostName;
use folder::{Folder, Name};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long an authority is good for.
const LIFE: Duration = Duration::from_secs(2 * 365 * 24 * 60 * 60);
/// So long before its end the next one is made and given to boxes,
const OVERLAP: Duration = Duration::from_secs(60 * 24 * 60 * 60);
/// and so long before its end the next one signs.
const HAND_OVER: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const LEAF_LIFE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The clock of a virtual machine lags after the computer has slept.
const LEAF_BEFORE: Duration = Duration::from_secs(48 * 60 * 60);
/// Certificates kept; the one that was not used for longest goes first.
const MOST_LEAVES: usize = 1024;

#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("cannot use {path}: {why}")]
    Unusable { path: String, why: String },
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
}

impl From<rcgen::Error> for AuthorityError {
    fn from(e: rcgen::Error) -> Self {
        Self::Certificate(e.to_string())
    }
}

impl From<rustls::Error> for AuthorityError {
    fn from(e: rustls::Error) -> Self {
        Self::Certificate(e.to_string())
    }
}

pub struct Authority {
    folder: Folder,
    /// Oldest first; at least one.
    generations: Mutex<Vec<Arc<Generation>>>,
    leaf_key: KeyPair,
    leaves: Mutex<Leaves>,
}

/// The authority in use, as people may know it.
#[derive(Debug, Clone)]
pub struct Current {
    pub name: String,
    pub expires: SystemTime,
    pub der: Vec<u8>,
    /// Its certificate.
    pub file: PathBuf,
}

/// One authority: a key and the certificate boxes have.
struct Generation {
    name: Name,
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

#[derive(Default)]
struct Leaves {
    all: HashMap<HostName, Leaf>,
    clock: u64,
}

struct Leaf {
    config: Arc<ServerConfig>,
    made: SystemTime,
    by: Arc<Generation>,
    used: u64,
}

impl Authority {
    /// Reads the authorities of a folder and makes what is missing. What others could have read or put
    /// there is not used.
    pub fn open(folder: &Path, now: SystemTime) -> Result<Self, AuthorityError> {
        let folder = Folder::open(folder)?;
        let mut generations = Vec::new();
        for name in folder.names()? {
            let (key, pem) = folder.read(&name)?;
            generations.push(Arc::new(Generation::read(&folder, name, &key, pem)?));
        }
        let leaf_key = KeyPair::generate()?;
        let generations = Mutex::new(generations);
        let authority = Self { folder, generations, leaf_key, leaves: Mutex::default() };
        authority.tend(now)?;
        Ok(authority)
    }

    /// Makes the next authority when it is time and forgets what expired. True when boxes should be given
    /// [`Authority::certificates`] anew.
    pub fn tend(&self, now: SystemTime) -> Result<bool, AuthorityError> {
        let mut generations = self.generations();
        let before = generations.len();
        for gone in generations.extract_if(.., |g| g.name.expires <= now) {
            self.folder.remove(&gone.name)?;
        }
        let lasts = |g: &Arc<Generation>| g.name.expires > now + OVERLAP;
        let mut changed = generations.len() != before;
        if !generations.iter().any(lasts) {
            generations.push(Arc::new(Generation::make(&self.folder, now)?));
            changed = true;
        }
        generations.sort_by_key(|g| g.name.expires);
        Ok(changed)
    }

    /// What boxes are to trust, as PEM. The one that signs comes first.
    pub fn certificates(&self, now: SystemTime) -> Vec<String> {
        let generations = self.generations();
        let signer = signer(&generations, now);
        let others = generations.iter().filter(|g| !signer.is_some_and(|s| Arc::ptr_eq(s, g)));
        signer.into_iter().chain(others).map(|g| g.pem.clone()).collect()
    }

    /// The one that signs.
    pub fn current(&self, now: SystemTime) -> Option<Current> {
        let signer = self.signer(now).ok()?;
        let der = CertificateDer::from_pem_slice(signer.pem.as_bytes()).ok()?;
        Some(Current {
            name: format!("AgentBox Egress CA {}", signer.name.id),
            expires: signer.name.expires,
            der: der.to_vec(),
            file: self.folder.certificate_file(&signer.name),
        })
    }

    /// How the proxy speaks TLS as this host.
    pub(crate) fn leaf(
        &self,
        host: &HostName,
        now: SystemTime,
    ) -> Result<Arc<ServerConfig>, AuthorityError> {
        let by = self.signer(now)?;
        if let Some(config) = self.leaves().find(host, &by, now) {
            return Ok(config);
        }
        let config = self.sign(&by, host, now)?;
        self.leaves().keep(host.clone(), Leaf { config: config.clone(), made: now, by, used: 0 });
        Ok(config)
    }

    fn signer(&self, now: SystemTime) -> Result<Arc<Generation>, AuthorityError> {
        let none = || AuthorityError::Certificate("there is no authority".into());
        signer(&self.generations(), now).cloned().ok_or_else(none)
    }

    fn sign(
        &self,
        by: &Generation,
        host: &HostName,
        now: SystemTime,
    ) -> Result<Arc<ServerConfig>, AuthorityError> {
        let from = now.checked_sub(LEAF_BEFORE).unwrap_or(now);
        let mut params = CertificateParams::default();
        params.not_before = from.into();
        params.not_after = (from + LEAF_LIFE).min(by.name.expires).into();
        params.distinguished_name = named(&common_name(host));
        params.subject_alt_names = vec![match host.address() {
            Some(address) => SanType::IpAddress(address),
            None => SanType::DnsName(host.as_str().try_into()?),
        }];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(serial()?);
        let leaf = params.signed_by(&self.leaf_key, &by.issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.leaf_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn generations(&self) -> MutexGuard<'_, Vec<Arc<Generation>>> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leaves(&self) -> MutexGuard<'_, Leaves> {
        self.leaves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The oldest that is not near its end; when all are, the one that lasts longest.
fn signer(generations: &[Arc<Generation>], now: SystemTime) -> Option<&Arc<Generation>> {
    let good = generations.iter().find(|g| g.name.expires > now + HAND_OVER);
    good.or(generations.last())
}

impl Generation {
    fn make(folder: &Folder, now: SystemTime) -> Result<Self, AuthorityError> {
        let name = Name::new(random()?, now + LIFE);
        let key = KeyPair::generate()?;
        let mut params = authority_params(&name);
        params.not_before = now.checked_sub(LEAF_BEFORE).unwrap_or(now).into();
        params.not_after = name.expires.into();
        params.serial_number = Some(serial()?);
        let pem = params.self_signed(&key)?.pem();
        folder.write(&name, &key.serialize_pem(), &pem)?;
        Ok(Self { name, pem, issuer: Issuer::new(params, key) })
    }

    fn read(folder: &Folder, name: Name, key: &str, pem: String) -> Result<Self, AuthorityError> {
        let bad = |why: String| folder.unusable(&name, why);
        let key = KeyPair::from_pem(key).map_err(|e| bad(e.to_string()))?;
        let issuer = Issuer::new(authority_params(&name), key);
        folder::check_pair(&issuer, &pem).map_err(bad)?;
        Ok(Self { name, pem, issuer })
    }
}

fn authority_params(name: &Name) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(&format!("AgentBox Egress CA {}", name.id));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// Two certificates of one authority with the same number are refused by browsers.
fn serial() -> Result<SerialNumber, AuthorityError> {
    let mut bytes: [u8; 16] = random()?;
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

fn random<const N: usize>() -> Result<[u8; N], AuthorityError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| AuthorityError::Certificate(e.to_string()))?;
    Ok(bytes)
}

fn named(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

/// A common name has at most 64 characters. Who goes by names reads the other field.
fn common_name(host: &HostName) -> String {
    if host.as_str().len() <= 64 { host.to_string() } else { "AgentBox".into() }
}

impl Leaves {
    fn find(
        &mut self,
        host: &HostName,
        by: &Arc<Generation>,
        now: SystemTime,
    ) -> Option<Arc<ServerConfig>> {
        self.clock += 1;
        let leaf = self.all.get_mut(host)?;
        let age = now.duration_since(leaf.made).unwrap_or(LEAF_LIFE);
        if age + LEAF_BEFORE + DAY > LEAF_LIFE || !Arc::ptr_eq(&leaf.by, by) {
            return None;
        }
        leaf.used = self.clock;
        Some(leaf.config.clone())
    }

    fn keep(&mut self, host: HostName, leaf: Leaf) {
        if self.all.len() >= MOST_LEAVES && !self.all.contains_key(&host) {
            let oldest = self.all.iter().min_by_key(|(_, l)| l.used).map(|(host, _)| host.clone());
            if let Some(oldest) = oldest {
                self.all.remove(&oldest);
            }
        }
        self.clock += 1;
        self.all.insert(host, Leaf { used: self.clock, ..leaf });
    }
}

#[cfg(test)]
mod tests;
