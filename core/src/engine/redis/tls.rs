//! TLS and mTLS, with rustls.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::config::{Pem, Tls};
use super::dial::DialError;

/// Speaks TLS over `stream` to the server that was reached under `host`.
pub(super) async fn handshake<S>(tls: &Tls, host: &str, stream: S) -> Result<TlsStream<S>, DialError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let name = tls.server_name.as_deref().unwrap_or(host);
    let name = ServerName::try_from(name.to_owned()).map_err(|_| {
        DialError::lasting("TLS: the host is no name that a certificate can carry; set tls_server_name".to_owned())
    })?;
    let config = client_config(tls).await?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|error| DialError::io("TLS handshake", &error))
}

async fn client_config(tls: &Tls) -> Result<ClientConfig, DialError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| DialError::lasting(format!("TLS: {error}")))?;
    let builder = if tls.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider)))
    } else {
        let roots = match &tls.ca {
            Some(pem) => Arc::new(trusted(&read(pem, "tls_ca").await?)?),
            None => system_roots().await?,
        };
        builder.with_root_certificates(roots)
    };
    let (Some(cert), Some(key)) = (&tls.cert, &tls.key) else { return Ok(builder.with_no_client_auth()) };
    let chain = certificates(&read(cert, "tls_cert").await?, "tls_cert")?;
    let key = PrivateKeyDer::from_pem_slice(&read(key, "tls_key").await?)
        .map_err(|_| DialError::lasting("TLS: tls_key holds no private key in PEM form".to_owned()))?;
    builder
        .with_client_auth_cert(chain, key)
        .map_err(|error| DialError::lasting(format!("TLS: tls_cert and tls_key cannot be used: {error}")))
}

async fn read(pem: &Pem, what: &str) -> Result<Vec<u8>, DialError> {
    match pem {
        Pem::Text(text) => Ok(text.clone()),
        Pem::File(path) => {
            let path = path.clone();
            let read = tokio::task::spawn_blocking(move || std::fs::read(path)).await;
            let why = match read {
                Ok(Ok(bytes)) => return Ok(bytes),
                Ok(Err(error)) => error.kind().to_string(),
                Err(_) => "interrupted".to_owned(),
            };
            Err(DialError::lasting(format!("TLS: the file of {what} cannot be read: {why}")))
        }
    }
}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, DialError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => Err(DialError::lasting(format!("TLS: {what} holds no certificate in PEM form"))),
    }
}

fn trusted(pem: &[u8]) -> Result<RootCertStore, DialError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, "tls_ca")? {
        roots
            .add(certificate)
            .map_err(|error| DialError::lasting(format!("TLS: a certificate of tls_ca cannot be used: {error}")))?;
    }
    Ok(roots)
}

/// The system's certificates, read once: there are hundreds.
async fn system_roots() -> Result<Arc<RootCertStore>, DialError> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    if let Some(roots) = ROOTS.get() {
        return Ok(Arc::clone(roots));
    }
    let loaded = tokio::task::spawn_blocking(|| {
        let mut roots = RootCertStore::empty();
        // One that rustls cannot use is none that a server should need.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    })
    .await
    .unwrap_or_else(|_| RootCertStore::empty());
    if loaded.is_empty() {
        return Err(DialError::lasting("TLS: the system has no CA certificates; set tls_ca".to_owned()));
    }
    Ok(Arc::clone(ROOTS.get_or_init(|| Arc::new(loaded))))
}

/// Takes any certificate: `insecure=true` asks for it.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
