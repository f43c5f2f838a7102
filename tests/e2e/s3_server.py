"""A small S3 service, strict where our client must be right: it computes AWS Signature Version 4 of each
request itself, from the documents of AWS, and refuses what differs. PUT, GET and DELETE of one object;
paths name the bucket. Objects live in a dictionary, so that tests can alter and lose them."""
import datetime
import hashlib
import hmac
import http.server
import threading
import urllib.parse


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(secret, method, target, headers, signed, date, region, payload):
    """headers: lower-case names. Returns the signature in hexadecimal."""
    path, _, query = target.partition("?")
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    canonical = "\n".join([
        method, urllib.parse.quote(urllib.parse.unquote(path), safe="/-_.~"),
        "&".join(f"{urllib.parse.quote(k, safe='-_.~')}={urllib.parse.quote(v, safe='-_.~')}" for k, v in pairs),
        *(f"{name}:{' '.join(headers[name].split())}" for name in signed), "", ";".join(signed), payload])
    scope = f"{date[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (date[:8], region, "s3", "aws4_request"):
        key = sign(key, part)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Service:
    """.objects: {"bucket/key": bytes}; .refused: why requests were refused; .fail_next: answer so many with 503."""

    def __init__(self, key, secret, region, token=None):
        self.key, self.secret, self.region, self.token = key, secret, region, token
        self.objects, self.refused, self.fail_next, self.requests = {}, [], 0, []
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self):
                service.answer(self)

            do_GET = do_DELETE = do_PUT

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def check(self, request, body):
        """None, or why the request is refused."""
        headers = {k.lower(): v for k, v in request.headers.items()}
        algorithm, _, rest = headers.get("authorization", "").partition(" ")
        fields = dict(f.strip().split("=", 1) for f in rest.split(",") if "=" in f)
        date, payload = headers.get("x-amz-date", ""), headers.get("x-amz-content-sha256", "")
        signed = fields.get("SignedHeaders", "").split(";")
        if algorithm != "AWS4-HMAC-SHA256":
            return f"algorithm {algorithm!r}"
        if fields.get("Credential") != f"{self.key}/{date[:8]}/{self.region}/s3/aws4_request":
            return f"credential {fields.get('Credential')!r}"
        then = datetime.datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        if abs((datetime.datetime.now(datetime.timezone.utc) - then).total_seconds()) > 900:
            return f"date {date}"
        if payload != hashlib.sha256(body).hexdigest():
            return "the digest of the body is wrong"
        for name in ("host", "x-amz-date", "x-amz-content-sha256", *(["x-amz-security-token"] if self.token else [])):
            if name not in signed:
                return f"{name} is not signed: {signed}"
        if signed != sorted(signed) or any(name not in headers for name in signed):
            return f"signed headers {signed}"
        if self.token and headers["x-amz-security-token"] != self.token:
            return "security token"
        want = signature(self.secret, request.command, request.path, headers, signed, date, self.region, payload)
        return None if hmac.compare_digest(want, fields.get("Signature", "")) else "SignatureDoesNotMatch"

    def answer(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        why, name = self.check(request, body), request.path.lstrip("/")
        self.requests.append((request.command, name))
        if self.fail_next > 0:
            self.fail_next -= 1
            return self.send(request, 503, b"SlowDown")
        if why:
            self.refused.append(why)
            return self.send(request, 403, why.encode())
        if request.command == "PUT":
            self.objects[name] = body
            return self.send(request, 200)
        if request.command == "DELETE":
            self.objects.pop(name, None)
            return self.send(request, 204)
        return self.send(request, 200, self.objects[name]) if name in self.objects else \
            self.send(request, 404, b"NoSuchKey")

    def send(self, request, status, body=b""):
        request.send_response(status)
        if status != 204:
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)
