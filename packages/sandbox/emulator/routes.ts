import type { FaultKind } from '../storage/faults.ts'
import { findSandboxTemplate } from '../storage/templates.ts'
import type { SandboxCall } from './call.ts'
import { unknownObject } from './errors.ts'
import { handleDeleteLink, handleListLinks, handleQrImage, handleWriteLink } from './links.ts'
import { handleDownloadMedia, handleReadMedia, handleDeleteMedia, handleUploadMedia } from './media.ts'
import { handleFindMessages, handlePostMessage } from './messages.ts'
import {
  handleDebugToken,
  handleListNumbers,
  handleListSubscriptions,
  handleReadNumber,
  handleSubscribe,
  handleUnsubscribe,
} from './numbers.ts'
import {
  handleArchiveTemplates,
  handleCreateTemplate,
  handleDeleteTemplates,
  handleEditTemplate,
  handleListTemplates,
  handleReadTemplate,
  handleUnpauseTemplate,
} from './templates.ts'
import { handleContinueUpload, handleReadUpload, handleStartUpload } from './uploads.ts'

export type SandboxRoute = {
  serve: (call: SandboxCall) => Promise<Response>
  /** The kind of faults that apply to it. */
  faults?: FaultKind | ((call: SandboxCall) => Promise<FaultKind | undefined>)
  /** The endpoint reads the body itself. */
  raw?: boolean
  /** Needs no token. */
  open?: boolean
}

/** Tries several endpoints, since an id does not say what kind of object it names; the first match counts. */
const firstMatching =
  (...endpoints: ((call: SandboxCall) => Promise<Response | undefined>)[]) =>
  async (call: SandboxCall): Promise<Response> => {
    for (const endpoint of endpoints) {
      const response = await endpoint(call)
      if (response) return response
    }
    throw unknownObject(call.path.id!, call.method)
  }

const faultKindOfObject = async (call: SandboxCall): Promise<FaultKind> =>
  (await findSandboxTemplate(call.db, call.path.id!)) ? 'templates' : 'media'

/** Edges of business accounts, numbers and apps come first; any other path is an object by its id. */
const routes: Readonly<Record<string, SandboxRoute>> = {
  'GET debug_token': { serve: handleDebugToken },
  'GET cdn/media/:id': { serve: handleDownloadMedia, faults: 'media' },
  'GET cdn/qr/:file': { serve: handleQrImage, open: true },
  'POST :id/messages': { serve: handlePostMessage, faults: 'messages' },
  'GET :id/messages': { serve: handleFindMessages, faults: 'account' },
  'POST :id/marketing_messages': {
    serve: (call) => handlePostMessage({ ...call, path: { ...call.path, edge: 'marketing_messages' } }),
    faults: 'messages',
  },
  'POST :id/media': { serve: handleUploadMedia, faults: 'media', raw: true },
  'POST :id/message_templates': { serve: handleCreateTemplate, faults: 'templates' },
  'GET :id/message_templates': { serve: handleListTemplates, faults: 'templates' },
  'DELETE :id/message_templates': { serve: handleDeleteTemplates, faults: 'templates' },
  'POST :id/message_templates/archive': { serve: handleArchiveTemplates, faults: 'templates' },
  'POST :id/message_templates/unarchive': {
    serve: (call) => handleArchiveTemplates({ ...call, path: { ...call.path, edge: 'unarchive' } }),
    faults: 'templates',
  },
  'POST :id/unpause': { serve: handleUnpauseTemplate, faults: 'templates' },
  'POST :id/message_qrdls': { serve: handleWriteLink, faults: 'links' },
  'GET :id/message_qrdls': { serve: handleListLinks, faults: 'links' },
  'GET :id/message_qrdls/:code': { serve: handleListLinks, faults: 'links' },
  'DELETE :id/message_qrdls/:code': { serve: handleDeleteLink, faults: 'links' },
  'GET :id/phone_numbers': { serve: handleListNumbers, faults: 'account' },
  'POST :id/subscribed_apps': { serve: handleSubscribe, faults: 'account' },
  'GET :id/subscribed_apps': { serve: handleListSubscriptions, faults: 'account' },
  'DELETE :id/subscribed_apps': { serve: handleUnsubscribe, faults: 'account' },
  'POST :id/uploads': { serve: handleStartUpload, faults: 'templates' },
  'GET :id': {
    serve: firstMatching(handleReadTemplate, handleReadNumber, handleReadMedia),
    faults: faultKindOfObject,
  },
  'POST :id': { serve: firstMatching(handleEditTemplate), faults: 'templates' },
  'DELETE :id': { serve: firstMatching(handleDeleteMedia), faults: 'media' },
}

const uploadRoutes: Readonly<Record<string, SandboxRoute>> = {
  GET: { serve: handleReadUpload },
  POST: { serve: handleContinueUpload, raw: true, faults: 'templates' },
}

const routeTable = Object.entries(routes).map(([key, route]) => {
  const [method, pattern] = key.split(' ') as [string, string]
  return { method, parts: pattern.split('/'), route }
})

/** Finds the route of a path without its version, and the parameters of the path. */
export const matchRoute = (
  method: string,
  parts: readonly string[],
): { route: SandboxRoute; path: Record<string, string> } | undefined => {
  const [first = ''] = parts
  if (parts.length === 1 && first.startsWith('upload:'))
    return Object.hasOwn(uploadRoutes, method)
      ? { route: uploadRoutes[method]!, path: { id: first } }
      : undefined
  for (const entry of routeTable) {
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
