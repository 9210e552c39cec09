//! A certificate authority of a test's own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};

use crate::redis::path_text;

/// A CA and what it signed, as PEM files in a private folder.
#[derive(Debug)]
pub struct Certificates {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// For the servers `redis.test` and `localhost` (names only).
    pub server: Identity,
    /// For servers that others find by address: `127.0.0.1`, `::1` and `localhost`.
    pub node: Identity,
    /// For a client.
    pub client: Identity,
}

/// A certificate and its key.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate's file.
    pub cert: PathBuf,
    /// The key's file.
    pub key: PathBuf,
}

impl Certificates {
    /// Makes a CA, certificates for servers, and one for a client.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub fn make() -> io::Result<Self> {
        let folder = TempDir::new()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "test CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(io::Error::other)?;
        fs::write(folder.path().join("ca.pem"), issuer.pem())?;
        let server = sign(folder.path(), &issuer, "server", &["redis.test", "localhost"], false)?;
        let node = sign(folder.path(), &issuer, "node", &["127.0.0.1", "::1", "localhost"], false)?;
        let client = sign(folder.path(), &issuer, "client", &[], false)?;
        Ok(Self { folder, issuer, server, node, client })
    }

    /// The CA's file.
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The parameters of a URL that trusts the CA and, with `client`, shows the client's certificate.
    pub fn parameters(&self, client: bool) -> String {
        let mut text = format!("tls_ca={}", path_text(&self.ca()));
        if client {
            text += &format!("&tls_cert={}&tls_key={}", path_text(&self.client.cert), path_text(&self.client.key));
        }
        text
    }

    /// A certificate for `names` (or IP addresses), signed by the CA.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub fn sign(&self, file: &str, names: &[&str]) -> io::Result<Identity> {
        sign(self.folder.path(), &self.issuer, file, names, false)
    }

    /// A certificate for `names` that ran out yesterday.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub fn sign_expired(&self, file: &str, names: &[&str]) -> io::Result<Identity> {
        sign(self.folder.path(), &self.issuer, file, names, true)
    }
}

fn sign(
    folder: &Path,
    issuer: &CertifiedIssuer<'static, KeyPair>,
    file: &str,
    names: &[&str],
    expired: bool,
) -> io::Result<Identity> {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
    params.distinguished_name.push(DnType::CommonName, file);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let today = OffsetDateTime::now_utc();
    params.not_before = today - Duration::days(10);
    params.not_after = if expired { today - Duration::days(1) } else { today + Duration::days(10) };
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let cert = params.signed_by(&key, issuer).map_err(io::Error::other)?;
    let identity = Identity { cert: folder.join(format!("{file}.pem")), key: folder.join(format!("{file}.key.pem")) };
    fs::write(&identity.cert, cert.pem())?;
    fs::write(&identity.key, key.serialize_pem())?;
    Ok(identity)
}
