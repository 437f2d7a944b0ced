import type { z } from 'zod'

/** A version of the API. `deprecatedAt`: a newer one took its place; `sunsetAt`: from then on it may be removed. */
export type ApiVersion = {
  readonly id: string
  readonly deprecatedAt?: string
  /** At least 180 days after `deprecatedAt`. */
  readonly sunsetAt?: string
}

/** The API versions served, newest last; a key is pinned to the newest of the day it was made. */
export const versions = [
  { id: '2026-10-01', deprecatedAt: '2026-11-23T00:00:00.000Z', sunsetAt: '2027-06-01T00:00:00.000Z' },
  { id: '2026-11-23' },
] as const satisfies readonly ApiVersion[]

export type ApiVersionId = (typeof versions)[number]['id']

export const apiVersions: readonly ApiVersionId[] = versions.map(({ id }) => id)
export const currentVersion: ApiVersionId = '2026-11-23'

/** An object of an answer. */
type Json = Record<string, unknown>

type Change = {
  /** The version that made it. Callers of versions before it send and are sent what was there. */
  readonly version: ApiVersionId
  /** Why, as a sentence of the changelog. */
  readonly why: string
}

/** A field of the input, or of the whole output, has another name. */
export type Rename = Change & {
  readonly kind: 'renamed'
  readonly in: 'input' | 'output'
  readonly from: string
  readonly to: string
}

/** A field of the output is no longer sent. */
export type Removal = Change & {
  readonly kind: 'removed'
  /** Where the object is that had it: names of fields, `data[]` for each item of a list. */
  readonly at: string
  readonly field: string
  readonly schema: z.core.$ZodType
  /** Its value in answers to earlier versions. `around`: the objects that the object is in, the nearest first. */
  readonly restore: (object: Json, around: readonly Json[]) => unknown
}

/** A field of the input must be given. Handlers still choose for callers of versions before, who may leave it out. */
type Requirement = Change & { readonly kind: 'required'; readonly field: string }

/**
 * What a version changed of an operation: handlers know the current version alone, and whoever calls in an earlier one
 * is served by applying its changes in reverse (catalog/past-operation.ts).
 */
export type VersionChange = Rename | Removal | Requirement
