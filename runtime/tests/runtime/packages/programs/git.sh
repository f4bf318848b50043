export GIT_AUTHOR_DATE='@1 +0000' GIT_COMMITTER_DATE='@1 +0000' GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
$RUN /usr/bin/git init -q -b main tree
cd tree
seq 100 >file
$RUN /usr/bin/git add file
$RUN /usr/bin/git commit -q -m one
seq 2 51 >file
$RUN /usr/bin/git commit -qam two
$RUN /usr/bin/git --no-pager log -p --stat
$RUN /usr/bin/git gc -q
$RUN /usr/bin/git fsck --full
$RUN /usr/bin/git clone -q . ../clone
ls ../clone
$RUN /usr/bin/git -C ../clone no-such-command
echo "status $?"
