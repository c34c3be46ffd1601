# A login shell resets PATH, and begins where the work is.
case ":$PATH:" in
  *:/home/vscode/.local/bin:*) ;;
  *) PATH=/home/vscode/.local/bin:$PATH ;;
esac
case $- in
  *i*) [ "$PWD" != "$HOME" ] || cd /workspace 2>/dev/null || : ;;
esac
