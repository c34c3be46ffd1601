# A login shell knows which box it is in, resets PATH, and begins where the work is.
if [ -r /etc/agentbox/box.env ]; then
  set -a
  . /etc/agentbox/box.env
  set +a
fi
case ":$PATH:" in
  *:/home/vscode/.local/bin:*) ;;
  *) PATH=/home/vscode/.local/bin:$PATH ;;
esac
case $- in
  *i*) [ "$PWD" != "$HOME" ] || cd /workspace 2>/dev/null || : ;;
esac
