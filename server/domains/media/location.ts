import { join, resolve } from 'node:path'
import { findNearestName } from '../../nearest-name.ts'

export type S3Location = Extract<MediaLocation, { kind: 's3' }>

/** Where files are kept: a folder, or a part of a bucket of S3-compatible storage. */
export type MediaLocation =
  | { kind: 'folder'; folder: string }
  | {
      kind: 's3'
      bucket: string
      /** Without slashes at its ends; empty: the whole bucket. */
      prefix: string
      region: string | undefined
      /** Undefined: Amazon S3. */
      endpoint: string | undefined
      /** Whether the bucket stands in the path of a URL, or in the name of its host. */
      addressing: 'path' | 'virtual'
    }

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
/** Characters that need no encoding anywhere. */
const PREFIX = /^(?:[\w.-]{1,100}(?:\/[\w.-]{1,100}){0,9})?$/
const REGION = /^[a-z0-9-]{1,40}$/
const PARAMETERS = ['region', 'endpoint', 'addressing']

const parseEndpoint = (text: string): string => {
  const url = URL.parse(text)
  if (url?.username || url?.password) throw new Error(`endpoint must not hold credentials. ${CREDENTIALS}`)
  if (!url || !/^https?:$/.test(url.protocol) || url.pathname !== '/' || url.search || url.hash)
    throw new Error('endpoint must be an http or https URL without a path, such as https://s3.example.com')
  return url.origin
}

const CREDENTIALS =
  'Give the credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or as any client of AWS finds them.'

/** Throws for a parameter that is not one, or is given twice. */
const requireKnownParameters = (parameters: URLSearchParams): void => {
  const names = [...parameters.keys()]
  for (const name of names) {
    const nearest = findNearestName(name, PARAMETERS)
    const hint = nearest ? `Did you mean ${nearest}?` : `There are ${PARAMETERS.join(', ')}.`
    if (!PARAMETERS.includes(name)) throw new Error(`"${name.slice(0, 40)}" is not a parameter. ${hint}`)
    if (names.indexOf(name) !== names.lastIndexOf(name)) throw new Error(`${name} is given twice`)
  }
}

const parseS3 = (text: string): MediaLocation => {
  const url = URL.parse(text)
  if (!url) throw new Error('must look like s3://bucket/prefix?region=eu-central-1')
  if (url.username || url.password) throw new Error(`must not hold credentials. ${CREDENTIALS}`)
  const bucket = url.host
  const prefix = url.pathname.replaceAll(/^\/+|\/+$/g, '')
  if (!BUCKET.test(bucket))
    throw new Error('the bucket must have 3 to 63 lower-case letters, digits, dots and hyphens')
  if (!PREFIX.test(prefix) || prefix.split('/').some((part) => /^\.+$/.test(part)) || url.hash)
    throw new Error('the prefix may have letters, digits, dots, hyphens and underscores between its slashes')
  requireKnownParameters(url.searchParams)
  const region = url.searchParams.get('region') ?? undefined
  if (region !== undefined && !REGION.test(region)) throw new Error('region must look like eu-central-1')
  const given = url.searchParams.get('endpoint')
  const endpoint = given === null ? undefined : parseEndpoint(given)
  const addressing = url.searchParams.get('addressing') ?? (endpoint === undefined ? 'virtual' : 'path')
  if (addressing !== 'path' && addressing !== 'virtual') throw new Error('addressing must be path or virtual')
  return { kind: 's3', bucket, prefix, region, endpoint, addressing }
}

/**
 * Parses a folder, or `s3://bucket/prefix?region=…&endpoint=…&addressing=path|virtual`. Throws an error that
 * says what is wrong.
 */
export const parseMediaLocation = (text: string): MediaLocation => {
  if (text.startsWith('s3://')) return parseS3(text)
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(text)?.[1]
  if (scheme !== undefined)
    throw new Error(`must be a folder, or s3://bucket/prefix, not "${scheme.slice(0, 20)}://…"`)
  return { kind: 'folder', folder: text }
}

/** A location as people know it. */
export const describeMediaLocation = (location: MediaLocation): string =>
  location.kind === 'folder'
    ? `the folder ${resolve(location.folder)}`
    : `the bucket ${location.bucket}${location.prefix && ` (${location.prefix})`}` +
      ` at ${location.endpoint ?? 'Amazon S3'}`

export type MediaLocations = { location: MediaLocation; previous: MediaLocation | undefined }

/** Where a server with this configuration keeps received files, and where they were before. */
export const mediaLocationsOf = ({
  media,
  mediaPrevious,
  dataDir,
}: {
  media?: string | undefined
  mediaPrevious?: string | undefined
  dataDir: string
}): MediaLocations => ({
  location: parseMediaLocation(media ?? join(dataDir, 'media')),
  previous: mediaPrevious === undefined ? undefined : parseMediaLocation(mediaPrevious),
})
