seq 5000 >file
$RUN /usr/bin/openssl dgst -sha256 file
$RUN /usr/bin/openssl dgst -sha3-256 -hmac key file
$RUN /usr/bin/openssl enc -aes-256-cbc -K 0011 -iv 0102 -in file -out secret 2>/dev/null
sha256sum secret
$RUN /usr/bin/openssl enc -d -aes-256-cbc -K 0011 -iv 0102 -in secret 2>/dev/null | cmp - file
