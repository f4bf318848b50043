$RUN /bin/zsh -c '
a=(1 2 3); print ${(j:,:)a} $((2 ** 40)) $ZSH_VERSION
for i in {1..3}; do /bin/echo $i; done | sort -r
TRAPUSR1() { print trapped }; kill -USR1 $$
sleep 60 & kill $!; wait $!; print $?'
