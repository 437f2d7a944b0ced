import type { FaultKind } from '../../../storage/sandbox/faults.ts'
import { findSandboxTemplate } from '../../../storage/sandbox/templates.ts'
import type { Call } from './call.ts'
import { noObject } from './errors.ts'
import { deleteLink, listLinks, qrImage, writeLink } from './links.ts'
import { downloadMedia, readMedia, removeMedia, uploadMedia } from './media.ts'
import { findMessages, postMessage } from './messages.ts'
import { debugToken, listNumbers, listSubscriptions, readNumber, subscribe, unsubscribe } from './numbers.ts'
import {
  archiveTemplates,
  createTemplate,
  deleteTemplates,
  editTemplate,
  listTemplates,
  readTemplate,
  unpauseTemplate,
} from './templates.ts'
import { continueUpload, readUpload, startUpload } from './uploads.ts'

export type Route = {
  serve: (call: Call) => Promise<Response>
  /** What kind of ordered fault it meets. */
  faults?: FaultKind | ((call: Call) => Promise<FaultKind | undefined>)
  /** It reads the body itself. */
  raw?: boolean
  /** It needs no token. */
  open?: boolean
}

/** An id alone does not say what it is of; the first that knows it answers. */
const firstOf =
  (...tries: ((call: Call) => Promise<Response | undefined>)[]) =>
  async (call: Call): Promise<Response> => {
    for (const one of tries) {
      const response = await one(call)
      if (response) return response
    }
    throw noObject(call.path.id!, call.method)
  }

const ofObject = async (call: Call): Promise<FaultKind> =>
  (await findSandboxTemplate(call.db, call.path.id!)) ? 'templates' : 'media'

/** Edges of business accounts, numbers and apps first; what is left is an object by its id. */
const routes: Readonly<Record<string, Route>> = {
  'GET debug_token': { serve: debugToken },
  'GET cdn/media/:id': { serve: downloadMedia, faults: 'media' },
  'GET cdn/qr/:file': { serve: qrImage, open: true },
  'POST :id/messages': { serve: postMessage, faults: 'messages' },
  'GET :id/messages': { serve: findMessages },
  'POST :id/marketing_messages': {
    serve: (call) => postMessage({ ...call, path: { ...call.path, edge: 'marketing_messages' } }),
    faults: 'messages',
  },
  'POST :id/media': { serve: uploadMedia, faults: 'media', raw: true },
  'POST :id/message_templates': { serve: createTemplate, faults: 'templates' },
  'GET :id/message_templates': { serve: listTemplates, faults: 'templates' },
  'DELETE :id/message_templates': { serve: deleteTemplates, faults: 'templates' },
  'POST :id/message_templates/archive': { serve: archiveTemplates, faults: 'templates' },
  'POST :id/message_templates/unarchive': {
    serve: (call) => archiveTemplates({ ...call, path: { ...call.path, edge: 'unarchive' } }),
    faults: 'templates',
  },
  'POST :id/unpause': { serve: unpauseTemplate, faults: 'templates' },
  'POST :id/message_qrdls': { serve: writeLink, faults: 'links' },
  'GET :id/message_qrdls': { serve: listLinks, faults: 'links' },
  'GET :id/message_qrdls/:code': { serve: listLinks, faults: 'links' },
  'DELETE :id/message_qrdls/:code': { serve: deleteLink, faults: 'links' },
  'GET :id/phone_numbers': { serve: listNumbers },
  'POST :id/subscribed_apps': { serve: subscribe },
  'GET :id/subscribed_apps': { serve: listSubscriptions },
  'DELETE :id/subscribed_apps': { serve: unsubscribe },
  'POST :id/uploads': { serve: startUpload, faults: 'templates' },
  'GET :id': { serve: firstOf(readTemplate, readNumber, readMedia), faults: ofObject },
  'POST :id': { serve: firstOf(editTemplate), faults: 'templates' },
  'DELETE :id': { serve: firstOf(removeMedia), faults: 'media' },
}

const uploads: Readonly<Record<string, Route>> = {
  GET: { serve: readUpload },
  POST: { serve: continueUpload, raw: true, faults: 'templates' },
}

const table = Object.entries(routes).map(([key, route]) => {
  const [method, pattern] = key.split(' ') as [string, string]
  return { method, parts: pattern.split('/'), route }
})

/** The route of a path without its version, and what the path names. */
export const findRoute = (
  method: string,
  parts: readonly string[],
): { route: Route; path: Record<string, string> } | undefined => {
  const [first = ''] = parts
  if (parts.length === 1 && first.startsWith('upload:'))
    return Object.hasOwn(uploads, method) ? { route: uploads[method]!, path: { id: first } } : undefined
  for (const entry of table) {
    if (
      entry.method !== method ||
      entry.parts.length !== parts.length ||
      !entry.parts.every((part, i) => part.startsWith(':') || part === parts[i])
    )
      continue
    return {
      route: entry.route,
      path: Object.fromEntries(
        entry.parts.flatMap((part, i) => (part.startsWith(':') ? [[part.slice(1), parts[i]!]] : [])),
      ),
    }
  }
  return undefined
}
