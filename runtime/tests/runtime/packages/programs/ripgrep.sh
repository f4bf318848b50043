$RUN /usr/bin/rg -j2 --sort path -n 'Copyr[a-z]+: ' /usr/share/doc/bash /usr/share/doc/ripgrep
$RUN /usr/bin/rg -c --sort path -i 'gnu|free' /usr/share/doc/bash /usr/share/doc/gzip
$RUN /usr/bin/rg nothing-like-this /etc/debian_version
echo "status $?"
