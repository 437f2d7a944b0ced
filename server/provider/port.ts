import type { StoredContent } from '../../catalog/message-content.ts'
import type { CallOwner } from '../../storage/channels/provider-accounts.ts'
import { isOutcomeUnknown } from '../kernel/open-outcomes.ts'
import { Problem } from '../kernel/problem.ts'

/**
 * What the service needs from the messaging provider. One adapter (`adapter.ts`) implements its protocol,
 * for the provider itself and for the sandbox. Calls are made with the credentials of the account that they
 * concern (`routed.ts`): the sender's, that in their arguments, or the `owner`'s. Each call makes one request
 * without retries, and throws nothing but a `Problem`; `isOutcomeUnknown` says whether the work may have been
 * done nevertheless.
 */
export type Provider = {
  /** Sends one message; the provider returns its `reference` with each status. */
  send: (from: Sender, message: OutgoingMessage, signal: AbortSignal) => Promise<SentMessage>
  /**
   * Looks for a message with this reference at the provider. `unknown`: the provider has no such query (the
   * true one has none), so only a status that carries the reference shows it.
   */
  findSent: (
    from: Sender,
    reference: string,
    signal: AbortSignal,
  ) => Promise<SentMessage | 'absent' | 'unknown'>
  uploadMedia: (
    from: Sender,
    file: { bytes: Uint8Array; contentType: string; fileName: string | null },
    signal: AbortSignal,
  ) => Promise<{ id: string }>
  mediaInfo: (
    mediaId: string,
    signal: AbortSignal,
    owner?: CallOwner,
  ) => Promise<{ url: string; contentType: string; size: number | null; sha256: string | null }>
  /**
   * Begins to download a media URL, which expires after five minutes. Throws 413 when there are more than
   * `maxBytes` bytes, also while they are read.
   */
  downloadMedia: (
    url: string,
    maxBytes: number,
    signal: AbortSignal,
    owner?: CallOwner,
  ) => Promise<AsyncIterable<Uint8Array>>
  phoneNumbers: (accountId: string, signal: AbortSignal) => Promise<ProviderNumber[]>
  /** Returns what the provider shows of one number. */
  phoneNumber: (from: Sender, signal: AbortSignal) => Promise<ProviderNumber>
  /** Makes the provider send this account's updates to our webhook. */
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
    owner?: CallOwner,
  ) => Promise<void>
  /** Lists all templates of an account, or those with exactly this name. */
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
  /** Deletes the template with this id, or those with the name in every language. */
  deleteTemplate: (
    accountId: string,
    template: { name: string; id?: string },
    signal: AbortSignal,
  ) => Promise<void>
  /** Uploads a sample for a media header in resumable steps; returns its handle. */
  uploadSample: (
    file: { bytes: Uint8Array; contentType: string; fileName: string },
    signal: AbortSignal,
    owner?: CallOwner,
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
  /** Returns undefined when no link has this code. */
  findLink: (from: Sender, code: string, signal: AbortSignal) => Promise<ProviderLink | undefined>
  /** Lists all links of a number, newest first. */
  listLinks: (from: Sender, signal: AbortSignal) => Promise<ProviderLink[]>
  deleteLink: (from: Sender, code: string, signal: AbortSignal) => Promise<void>
}

/** The business number that a call is made for. */
type Sender = { phoneNumberId: string }

/**
 * `to`: E.164 digits; `recipient`: the id of a user who hides the number. `body`: the provider's message
 * without its envelope: `type` and the object of that name.
 */
export type OutgoingMessage = {
  to?: string
  recipient?: string
  reference: string
  replyTo?: string
  body: { type: string } & Record<string, unknown>
}
/** `id`: of the message at the provider. */
/** `customer`: to whom, as the provider knows the customer; both may be null. Absent when it does not say. */
export type SentMessage = {
  id: string
  customer?: { phone: string | null; userId: string | null }
  /** Why the provider does not send it yet. */
  held?: NonNullable<StoredContent['held']>
}
export type ProviderNumber = {
  id: string
  displayPhoneNumber: string
  verifiedName: string | null
  status: string
  qualityRating: string | null
  /** How many customers the number may write to in a day, such as `TIER_1K`; null when it is not told. */
  messagingLimit: string | null
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
  quality: string | null
}
export type ProviderLink = { code: string; message: string; url: string; qrImageUrl: string | null }

/**
 * Wraps a query that finds out whether an earlier call did its work. A refusal of the query says nothing
 * about that call, so it becomes `upstream_unavailable`, with an unknown outcome.
 */
export const lookUpOutcome = async <T>(query: Promise<T>): Promise<T> => {
  try {
    return await query
  } catch (error) {
    if (!(error instanceof Problem) || isOutcomeUnknown(error)) throw error
    const { reason: _, errors: __, ...extras } = error.extras
    throw new Problem(
      'upstream_unavailable',
      `The outcome of the call could not be determined. ${error.message}`,
      extras,
      error.headers,
    )
  }
}

/** The provider's own error code of a refusal; undefined when the problem is not one. */
export const providerCodeOf = (problem: Problem): number | undefined =>
  problem.extras['provider_code'] as number | undefined

export const unconfiguredProblem = (): Problem =>
  new Problem(
    'service_unconfigured',
    'This server has no messaging provider, so nothing was sent or changed. Start it with WCRM_PROVIDER_URL ' +
      'and its secrets, or with WCRM_PROVIDER=sandbox, which plays the provider and reaches no customer.',
    { reason: 'provider_unconfigured' },
  )

const throwUnconfigured = async (): Promise<never> => {
  throw unconfiguredProblem()
}

/** Stands in where no provider is configured: every call throws `service_unconfigured`. */
export const unconfiguredProvider = new Proxy({}, { get: () => throwUnconfigured }) as Provider

export const isProviderConfigured = (provider: Provider): boolean => provider !== unconfiguredProvider

/** Throws 503 when there is no provider to call: before anything is written, and for dry runs alike. */
export const requireProviderConfigured = (provider: Provider): void => {
  if (!isProviderConfigured(provider)) throw unconfiguredProblem()
}
