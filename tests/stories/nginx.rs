//! A real server that Tenfold did not start.

use std::path::Path;
use std::process::{Child, Command};

use rustix::process::Signal;

use crate::harness::{eventually, free_address, get, send};

/// nginx on a free port, stopped by its id when the story is over.
pub struct Nginx {
    process: Child,
    pub address: String,
    /// Speaks HTTP/2 only, and gives up every connection after 100 requests.
    pub http2: String,
    /// Where it speaks TLS, with a certificate for 127.0.0.1 that is in `cert.pem`.
    pub secure: String,
}

impl Nginx {
    pub fn start(directory: &Path) -> Nginx {
        let (address, http2, secure) = (free_address(), free_address(), free_address());
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(directory.join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(directory.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let configuration = format!(
            "daemon off; pid {0}/pid; error_log {0}/error.log; worker_processes 1;
             events {{}}
             http {{
               access_log off; client_body_temp_path {0}/a; proxy_temp_path {0}/b;
               fastcgi_temp_path {0}/c; uwsgi_temp_path {0}/d; scgi_temp_path {0}/e;
               server {{
                 listen {address}; listen unix:{0}/nginx.sock; listen {secure} ssl;
                 ssl_certificate {0}/cert.pem; ssl_certificate_key {0}/key.pem;
                 location / {{ return 200 \"hello $http_x_forwarded_for\\n\"; }}
                 location /missing {{ return 404; }}
                 location /moved {{ return 302 /; }}
                 location /for-me {{
                   if ($http_authorization != \"Basic bWU6czNjcmV0\") {{ return 401; }}
                   return 200;
                 }}
               }}
               server {{
                 listen {http2} http2;
                 keepalive_requests 100;
                 location / {{ return 200 \"hello\"; }}
                 location /missing {{ return 404; }}
               }}
             }}",
            directory.display()
        );
        let file = directory.join("nginx.conf");
        std::fs::write(&file, configuration).unwrap();
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin";
        let process = Command::new("nginx").arg("-c").arg(&file).env("PATH", path).spawn().unwrap();
        let started = address.parse().unwrap();
        eventually("nginx answers", || get(started, "/").is_ok());
        Nginx { process, address, http2, secure }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        send(self.process.id(), Signal::TERM);
        let _ = self.process.wait();
    }
}
