import { followCode } from '../../storage/short-links.ts'
import type { App } from '../app.ts'
import { escape, html } from '../http/pages.ts'
import { digitsOf } from './number.ts'

type Followed = NonNullable<Awaited<ReturnType<typeof followCode>>>

/**
 * The page behind `/message/<code>`, from which the chat is opened; 404 for a code that is none of ours, or
 * of a link that was deleted.
 */
export const servePage = async (app: App, code: string): Promise<Response> => {
  const link = /^\w{1,64}$/.test(code) ? await followCode(app.db, code) : undefined
  return link
    ? html(page(`Chat with ${link.channel_name ?? 'us'}`, body(link, app.config.publicUrl)))
    : html(page('This link does not work', gone), undefined, 404)
}

const gone = '<p>There is no chat at this address. The link was deleted, or its end is missing.</p>'

const body = (link: Followed, publicUrl: string): string => {
  const phone = digitsOf(link.channel_identifier)
  // The provider's own links open the chat. Ours are those of the sandbox, and lead here.
  const ours = link.url.startsWith(`${publicUrl}/`)
  const href = !ours
    ? link.url
    : phone !== null && /^\d+$/.test(phone)
      ? `https://wa.me/${phone}?text=${encodeURIComponent(link.message)}`
      : undefined
  return `
${phone === null ? '' : `<p class="number">${escape(/^\d+$/.test(phone) ? `+${phone}` : phone)}</p>`}
<p id="typed">You will find this typed, ready to send:</p>
<blockquote dir="auto" aria-labelledby="typed">${escape(link.message)}</blockquote>
${href === undefined ? '' : `<p><a class="open" href="${escape(href)}" rel="noreferrer">Open the chat</a></p>`}
${ours ? sandboxNote(link) : ''}`
}

/** For whoever tries it out: the app knows nothing of a number of the sandbox. */
const sandboxNote = ({ channel_id: channelId, message }: Followed): string => `
<section aria-labelledby="sandbox"><h2 id="sandbox">This server runs with the sandbox</h2>
<p>No message reaches anybody. To write as a customer who followed this link:</p>
<pre tabindex="0"><code>npx wcrm sandbox say --from "+1 555 010 0777" --channel ${escape(channelId)} '${escape(message.replaceAll("'", "'\\''"))}'</code></pre></section>`

const page = (title: string, content: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><title>${escape(title)}</title>
<style>
:root { color-scheme: light dark }
body { font: 17px/1.5 system-ui, sans-serif; max-width: 30rem; margin: 0 auto; padding: 12vh 1.25rem 2rem; overflow-wrap: anywhere }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 } h2 { font-size: 1rem; margin: 0 }
.number { margin: .25rem 0 1.5rem; opacity: .8 }
blockquote { margin: 0 0 1.5rem; padding: .75rem 1rem; border-radius: .75rem; background: #8882; white-space: pre-wrap }
.open { display: inline-block; padding: .75rem 1.5rem; border-radius: 2rem; background: #0b6b4f; color: #fff; font-weight: 600; text-decoration: none }
.open:hover { text-decoration: underline } .open:focus-visible { outline: 3px solid; outline-offset: 3px }
section { margin-top: 2.5rem; padding-top: 1.25rem; border-top: 1px solid #8885; font-size: .9rem }
pre { padding: .75rem 1rem; overflow-x: auto; border: 1px solid #8885; border-radius: .5rem; white-space: pre-wrap } code { font: .9em ui-monospace, monospace }
</style></head><body><main>
<h1>${escape(title)}</h1>${content}
</main></body></html>
`
