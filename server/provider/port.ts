import { Problem } from '../core/problem.ts'

/**
 * What the service asks of the messaging provider. One adapter (`adapter.ts`) speaks its protocol, to the
 * provider itself or to the sandbox. Each call asks once, and throws a `Problem` and nothing else;
 * `outcomeUnknown` tells whether the work may have been done all the same.
 */
export type Provider = {
  /** Sends one message; `reference` comes back with each of its statuses. */
  send: (from: Sender, message: Outgoing, signal: AbortSignal) => Promise<Sent>
  /**
   * Whether a message with this reference reached the provider. `unknown`: the provider cannot be asked
   * (the true one cannot), so only a status that carries the reference tells.
   */
  findSent: (from: Sender, reference: string, signal: AbortSignal) => Promise<Sent | 'absent' | 'unknown'>
  uploadMedia: (
    from: Sender,
    file: { bytes: Uint8Array; contentType: string; fileName: string | null },
    signal: AbortSignal,
  ) => Promise<{ id: string }>
  mediaInfo: (
    mediaId: string,
    signal: AbortSignal,
  ) => Promise<{ url: string; contentType: string; size: number | null; sha256: string | null }>
  /**
   * The bytes behind a media URL, which dies after five minutes; refuses with 413 when there are more than
   * `mostBytes`.
   */
  downloadMedia: (url: string, mostBytes: number, signal: AbortSignal) => Promise<Uint8Array>
  phoneNumbers: (accountId: string, signal: AbortSignal) => Promise<ProviderNumber[]>
  /** Has the provider send this account's updates to our webhook. */
  subscribe: (
    accountId: string,
    callback: { url: string; verifyToken: string } | undefined,
    signal: AbortSignal,
  ) => Promise<void>
  createTemplate: (
    accountId: string,
    template: TemplateSubmission,
    signal: AbortSignal,
  ) => Promise<{ id: string; status: string; category: string | null }>
  editTemplate: (
    templateId: string,
    change: { components: readonly unknown[]; category?: string },
    signal: AbortSignal,
  ) => Promise<void>
  /** Every template of an account, those of exactly this name where it is given. */
  listTemplates: (
    accountId: string,
    name: string | undefined,
    signal: AbortSignal,
  ) => Promise<ProviderTemplate[]>
  archiveTemplates: (
    accountId: string,
    ids: readonly string[],
    signal: AbortSignal,
  ) => Promise<{ archived: string[]; failed: Record<string, string> }>
  unarchiveTemplates: (
    accountId: string,
    ids: readonly string[],
    signal: AbortSignal,
  ) => Promise<{ unarchived: string[]; failed: Record<string, string> }>
  /** Deletes the template of this id, or those of the name in every language. */
  deleteTemplate: (
    accountId: string,
    template: { name: string; id?: string },
    signal: AbortSignal,
  ) => Promise<void>
  /** Uploads a sample for a media header in resumable steps; answers the handle. */
  uploadSample: (
    file: { bytes: Uint8Array; contentType: string; fileName: string },
    signal: AbortSignal,
  ) => Promise<{ handle: string }>
  createLink: (
    from: Sender,
    link: { message: string; qrFormat: 'PNG' | 'SVG' | null },
    signal: AbortSignal,
  ) => Promise<ProviderLink>
  updateLink: (
    from: Sender,
    link: { code: string; message: string },
    signal: AbortSignal,
  ) => Promise<ProviderLink>
  /** Undefined when there is none with this code. */
  findLink: (from: Sender, code: string, signal: AbortSignal) => Promise<ProviderLink | undefined>
  /** Every link of a number, newest first. */
  listLinks: (from: Sender, signal: AbortSignal) => Promise<ProviderLink[]>
  deleteLink: (from: Sender, code: string, signal: AbortSignal) => Promise<void>
}

/** The business number that a call is about. */
type Sender = { phoneNumberId: string }

/**
 * `to`: E.164 digits; `recipient`: the id of a user who shows no number. `body`: the part of the provider's
 * message after the envelope, `type` and its object.
 */
export type Outgoing = {
  to?: string
  recipient?: string
  reference: string
  replyTo?: string
  body: { type: string } & Record<string, unknown>
}
/** `id`: the provider's message id. */
export type Sent = { id: string }
export type ProviderNumber = {
  id: string
  displayPhoneNumber: string
  verifiedName: string | null
  status: string
  qualityRating: string | null
}
type TemplateSubmission = {
  name: string
  language: string
  category: string
  allowCategoryChange?: boolean
  components: readonly unknown[]
}
export type ProviderTemplate = {
  id: string
  name: string
  language: string
  status: string
  category: string | null
  components: readonly unknown[]
  rejectedReason: string | null
}
export type ProviderLink = { code: string; message: string; url: string; qrImageUrl: string | null }

/** Reasons with which a call was certainly not done, although trying again may help. */
const NOT_DONE = new Set<unknown>(['throttled', 'unreachable'])

/**
 * Whether a call that failed so may have been done all the same. Then it is found out before the call is
 * made again.
 */
export const outcomeUnknown = (problem: Problem): boolean =>
  problem.code === 'timeout' ||
  (problem.code === 'upstream_unavailable' && !NOT_DONE.has(problem.extras.reason))

/**
 * For look-ups that find out whether an earlier call was done: whatever refusal they meet tells nothing
 * about that call, so it becomes
 * `upstream_unavailable`, with an unknown outcome.
 */
export const lookUp = async <T>(asked: Promise<T>): Promise<T> => {
  try {
    return await asked
  } catch (error) {
    if (!(error instanceof Problem) || outcomeUnknown(error)) throw error
    const { reason: _, errors: __, ...extras } = error.extras
    throw new Problem(
      'upstream_unavailable',
      `What became of the call could not be found out. ${error.message}`,
      extras,
      error.headers,
    )
  }
}

/** What a refusal by the provider carries: its own code, in `problem.extras.provider_code`. */
export const providerCode = (problem: Problem): number | undefined =>
  problem.extras['provider_code'] as number | undefined
