INSERT INTO reader (mail, zone, interests, credits) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (mail) DO UPDATE SET mail = excluded.mail
RETURNING id
