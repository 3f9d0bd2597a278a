"""Forty pairs of texts: what was retired, and what somebody writes afterwards."""

# The new text says nearly what the old one said.
RETURNS = (
    ("The owner lives in Metz.", "owner lives in Metz now"),
    ("Ines prefers green tea in the morning.", "In the morning Ines prefers green tea"),
    ("The meeting with Bruno is on Tuesday at 10:30.", "Meeting with Bruno: Tuesday, 10:30"),
    ("The backup runs every night on the NAS.", "Every night the backups run on the NAS"),
    (
        "The car is parked in the garage behind the house.",
        "Her car parks in the garage behind the house",
    ),
    ("Deploys to production need two approvals.", "A deploy to production needs two approvals"),
    ("The printer in the office is called Gutenberg.", "the office printer is called Gutenberg"),
    ("He is allergic to peanuts.", "He has an allergy: allergic to peanuts"),
    ("The password manager is Bitwarden.", "Bitwarden is the password manager we use"),
    ("The project uses Postgres 15 as its database.", "The project's database is Postgres 15"),
    ("Anna does not eat meat.", "Anna doesn't eat meat"),
    (
        "The train to Lyon leaves at 7:12 from platform 4.",
        "The Lyon train leaves platform 4 at 7:12",
    ),
    (
        "She wants short answers without small talk.",
        "Short answers without any small talk, she wants",
    ),
    ("Die Besprechung findet im großen Raum statt.", "Besprechung findet statt im großen Raum"),
    ("Der Hund heißt Balu und ist braun.", "Balu heißt der braune Hund"),
    ("Seine Schwester wohnt in Graz.", "In Graz wohnt seine Schwester"),
    ("The garden needs watering twice a week.", "Watering: the garden needs it twice a week"),
    ("The API returns errors as JSON objects.", "Errors are returned by the API as JSON objects"),
    (
        "Their son plays the violin in the school orchestra.",
        "The son plays violin in his school's orchestra",
    ),
    (
        "The house was painted blue last summer.",
        "It was last summer that the house got its blue paint",
    ),
)

# The new text says something else, though its words are near: another number, name or a negation,
# or another thing.
OTHERS = (
    ("The owner lives in Metz.", "The owner lives in Lyon."),
    ("Ines prefers green tea in the morning.", "Bruno prefers green tea in the morning."),
    ("The meeting is on Tuesday at 10:30.", "The meeting is on Tuesday at 11:30."),
    ("The backup runs every night on the NAS.", "The backup never runs at night on the NAS."),
    ("Deploys to production need two approvals.", "Deploys to production need three approvals."),
    (
        "The printer in the office is called Gutenberg.",
        "The printer in the office is called Caxton.",
    ),
    ("He is allergic to peanuts.", "He is not allergic to peanuts."),
    (
        "The project uses Postgres 15 as its database.",
        "The project uses Postgres 16 as its database.",
    ),
    ("Anna does not eat meat.", "Anna does eat meat."),
    (
        "The train to Lyon leaves at 7:12 from platform 4.",
        "The train to Lyon leaves at 7:12 from platform 5.",
    ),
    ("The dentist is on Monday.", "The dentist is on Thursday."),
    ("Der Hund heißt Balu und ist braun.", "Der Hund heißt Rex und ist braun."),
    ("Seine Schwester wohnt in Graz.", "Seine Schwester wohnt nicht in Graz."),
    ("The invoice of March was 412 euros.", "The invoice of March was 421 euros."),
    ("She likes working in the evening.", "She hates working in the evening."),
    ("The garden needs watering twice a week.", "The kitchen needs cleaning twice a week."),
    ("The API returns errors as JSON objects.", "The command line prints errors on one line."),
    ("Their son plays the violin.", "Their daughter studies law."),
    ("The house was painted blue last summer.", "The boat was sold in winter."),
    ("The shop opens at nine.", "The shop closes at nine."),
)
