import type { Download } from './download-url.ts'

/** A watch over one download. `signal` is aborted when nothing has arrived for too long. */
export type StallWatch = {
  signal: AbortSignal
  /** Passes the content on, and watches each wait for more of it. */
  follow: (content: Download['content']) => Download['content']
  /** Something has arrived. */
  restart: () => void
  end: () => void
}

/** Begins to watch; also `signal` aborts. The time that the reader of the content takes does not count. */
export const watchForStall = (signal: AbortSignal, ms: number): StallWatch => {
  const stalled = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const end = (): void => clearTimeout(timer)
  const restart = (): void => {
    end()
    timer = setTimeout(() => stalled.abort(new Error(`nothing arrived for ${ms} ms`)), ms)
  }
  const follow = async function* (content: Download['content']): AsyncGenerator<Uint8Array> {
    restart()
    for await (const chunk of content) {
      end()
      yield chunk
      restart()
    }
  }
  restart()
  return { signal: AbortSignal.any([signal, stalled.signal]), follow, restart, end }
}
