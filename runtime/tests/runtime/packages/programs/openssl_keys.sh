# Big numbers, elliptic curves and random ones: what they sign, they verify.
$RUN /usr/bin/openssl genpkey -algorithm ed25519 -out key
$RUN /usr/bin/openssl pkey -in key -pubout -out public
echo message >message
$RUN /usr/bin/openssl pkeyutl -sign -inkey key -rawin -in message -out signature
$RUN /usr/bin/openssl pkeyutl -verify -pubin -inkey public -rawin -in message -sigfile signature
/usr/bin/openssl pkeyutl -verify -pubin -inkey public -rawin -in message -sigfile signature
$RUN /usr/bin/openssl prime -hex FFFFFFFFFFFFFFC5
