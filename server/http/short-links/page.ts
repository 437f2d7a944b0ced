import { findLinkByCode } from '../../../storage/messages/short-links.ts'
import type { App } from '../../app.ts'
import { escapeHtml } from '../html.ts'
import { createHtmlResponse } from '../pages.ts'
import { toDigits } from '../../domains/short-links/number.ts'

type FollowedLink = NonNullable<Awaited<ReturnType<typeof findLinkByCode>>>

/**
 * Serves the page behind `/message/<code>`, which opens the chat; a 404 page for an unknown code or a deleted
 * link.
 */
export const serveLinkPage = async (
  { db, config }: Pick<App, 'db' | 'config'>,
  code: string,
): Promise<Response> => {
  const link = /^\w{1,64}$/.test(code) ? await findLinkByCode(db, code) : undefined
  return link
    ? createHtmlResponse(
        renderPage(`Chat with ${link.channel_name ?? 'us'}`, renderBody(link, config.publicUrl)),
      )
    : createHtmlResponse(renderPage('This link does not work', NOT_FOUND_BODY), undefined, 404)
}

const NOT_FOUND_BODY =
  '<p>There is no chat at this address. The link was deleted, or the address is incomplete.</p>'

const renderBody = (link: FollowedLink, publicUrl: string): string => {
  const phone = toDigits(link.channel_identifier)
  // The provider's own links open the chat. Links of the sandbox lead to this page.
  const isSandbox = link.url.startsWith(`${publicUrl}/`)
  const href = !isSandbox
    ? link.url
    : phone !== null && /^\d+$/.test(phone)
      ? `https://wa.me/${phone}?text=${encodeURIComponent(link.message)}`
      : undefined
  const openLink =
    href === undefined
      ? ''
      : `<p><a class="open" href="${escapeHtml(href)}" rel="noreferrer">Open the chat</a></p>`
  return `
${phone === null ? '' : `<p class="number">${escapeHtml(/^\d+$/.test(phone) ? `+${phone}` : phone)}</p>`}
<p id="typed">This message is typed for you, ready to send:</p>
<blockquote dir="auto" aria-labelledby="typed">${escapeHtml(link.message)}</blockquote>
${openLink}
${isSandbox ? renderSandboxNote(link) : ''}`
}

/** Shown with the page of a sandbox link: the messaging app does not know the sandbox's numbers. */
const renderSandboxNote = ({ channel_id: channelId, message }: FollowedLink): string => {
  const shellMessage = `'${message.replaceAll("'", "'\\''")}'`
  const command = `npx wcrm sandbox say --from "+1 555 010 0777" --channel ${channelId} ${shellMessage}`
  return `
<section aria-labelledby="sandbox"><h2 id="sandbox">This server runs with the sandbox</h2>
<p>Messages reach nobody. To write as a customer who followed this link:</p>
<pre tabindex="0"><code>${escapeHtml(command)}</code></pre></section>`
}

const STYLE = `
:root { color-scheme: light dark }
body {
  font: 17px/1.5 system-ui, sans-serif; max-width: 30rem;
  margin: 0 auto; padding: 12vh 1.25rem 2rem; overflow-wrap: anywhere
}
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 } h2 { font-size: 1rem; margin: 0 }
.number { margin: .25rem 0 1.5rem; opacity: .8 }
blockquote {
  margin: 0 0 1.5rem; padding: .75rem 1rem; border-radius: .75rem;
  background: #8882; white-space: pre-wrap
}
.open {
  display: inline-block; padding: .75rem 1.5rem; border-radius: 2rem;
  background: #0b6b4f; color: #fff; font-weight: 600; text-decoration: none
}
.open:hover { text-decoration: underline } .open:focus-visible { outline: 3px solid; outline-offset: 3px }
section { margin-top: 2.5rem; padding-top: 1.25rem; border-top: 1px solid #8885; font-size: .9rem }
pre {
  padding: .75rem 1rem; overflow-x: auto;
  border: 1px solid #8885; border-radius: .5rem; white-space: pre-wrap
}
code { font: .9em ui-monospace, monospace }
`

const renderPage = (title: string, content: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><title>${escapeHtml(title)}</title>
<style>${STYLE}</style></head><body><main>
<h1>${escapeHtml(title)}</h1>${content}
</main></body></html>
`
