# For a tap of our own. Untested: there is no release and no dmg yet, and nobody has run it on macOS.
# `version` and `sha256` change with each release; `url` is where the dmg of `make bundle` is put.
cask "agentbox" do
  arch arm: "aarch64", intel: "x64"

  version "0.1.0"
  # Of the dmgs, once there are any; until then nothing installs.
  sha256 arm:   "0000000000000000000000000000000000000000000000000000000000000000",
         intel: "0000000000000000000000000000000000000000000000000000000000000000"

  url "https://github.com/agentbox/agentbox/releases/download/v#{version}/AgentBox_#{version}_#{arch}.dmg"
  name "AgentBox"
  desc "Run coding agents in boxes that hold no credentials"
  homepage "https://github.com/agentbox/agentbox"

  # Boxes need an engine; any other that speaks Docker's API does as well.
  depends_on formula: "colima"
  depends_on macos: ">= :big_sur"

  app "AgentBox.app"
  binary "#{appdir}/AgentBox.app/Contents/MacOS/agentbox"

  generate_completions_from_executable "#{appdir}/AgentBox.app/Contents/MacOS/agentbox", "completions"

  uninstall quit: "dev.agentbox.desktop"

  zap trash: "~/.agentbox"
end
