// Search from disk. A browser starts no worker for a page that was opened as a file. Here the theme's worker runs in a
// hidden frame of the page instead, with the two things that it needs of a worker: messages in, messages out.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      this.inside = frame.contentWindow
      this.loaded = new Promise((done) => {
        const page = frame.contentDocument
        page.open()
        page.write("<!doctype html><title>search</title>")
        page.close()
        this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
        const script = page.createElement("script")
        script.src = url
        script.onload = done
        page.head.appendChild(script)
      })
    }
    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
  window.Worker = window.IFrameWorker
}
