seq 20000 >file
$RUN /bin/gzip -kn9 file
sha256sum file.gz
$RUN /bin/gzip -dc file.gz | cmp - file
printf 'damaged' | $RUN /bin/gzip -dc
echo "status $?"
